"""A page that shows lives at a glance, of one or of many: `modlife report`.

told.py       what run directories say, of lives that have ended and of lives that go on
headline.py   a sentence and a few numbers; panels/: one question each; films.py: episodes
charts.py     pictures with their tables; markup.py: HTML in which names are text; colours.py
page.py       all of it as one file; assets/: its frame, style and script
"""
