"use strict";
// Charts are there without this script. It reads their tables aloud, cell by cell, where somebody points or moves.
(() => {
  const said = document.getElementById("said");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const within = (value, most) => Math.max(0, Math.min(most, value));

  class Chart {
    constructor(plot) {
      this.plot = plot;
      this.area = plot.querySelector(".area");
      this.about = this.area.dataset;
      this.details = plot.closest("figure").querySelector("details");
      const table = this.details.querySelector("table");
      this.heads = table.tHead.rows[0].cells;
      this.rows = table.tBodies[0].rows;
      this.columns = this.heads.length - 1;
      this.row = this.column = 0;
      this.places = (this.about.x || "").split(" ").map(Number);
      this.marks = new Map([...this.area.querySelectorAll(".m")].map((mark) => [mark.dataset.at, mark]));
      plot.setAttribute("role", "application");
      plot.setAttribute("aria-roledescription", "chart");
      plot.addEventListener("keydown", (event) => this.key(event));
      plot.addEventListener("blur", () => this.hide());
      this.area.addEventListener("pointermove", (event) => this.point(event));
      this.area.addEventListener("pointerleave", () => this.hide());
    }

    text(row, column) {
      return this.rows[row].cells[column + 1].textContent;
    }

    words() {
      const parts = {
        row: this.rows[this.row].cells[0].textContent,
        column: this.heads[this.column + 1].textContent,
        value: this.text(this.row, this.column) || "not known",
      };
      return this.about.say.replace(/\{(row|column|value)\}/g, (_, name) => parts[name]);
    }

    // Where a cell lies in the picture: left, top, width and height of 1, or nothing.
    box(row, column) {
      if (this.about.kind === "grid") {
        return [column / this.columns, row / this.rows.length, 1 / this.columns, 1 / this.rows.length];
      }
      if (this.about.kind === "lines") {
        const value = parseFloat(this.text(row, column).replace(/,/g, ""));
        if (Number.isNaN(value)) return null;
        return [this.places[column], (this.about.high - value) / (this.about.high - this.about.low), 0, 0];
      }
      const mark = this.marks.get(row + " " + column);
      if (!mark) return null;
      const [own, all] = [mark.getBoundingClientRect(), this.area.getBoundingClientRect()];
      return [(own.left - all.left) / all.width, (own.top - all.top) / all.height, own.width / all.width,
        own.height / all.height];
    }

    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const last = [this.rows.length - 1, this.columns - 1];
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e9],
        End: [0, 1e9] };
      if (event.key === "t") {
        this.details.open = !this.details.open;
      } else if (event.key === "Escape") {
        this.hide();
      } else if (event.key in moves) {
        if (this.tip) {
          this.row = within(this.row + moves[event.key][0], last[0]);
          this.column = within(this.column + moves[event.key][1], last[1]);
        }
        this.show();
        said.textContent = this.words();
      } else {
        return;
      }
      event.preventDefault();
    }

    point(event) {
      const all = this.area.getBoundingClientRect();
      const found = this.nearest(within((event.clientX - all.left) / all.width, 1),
        within((event.clientY - all.top) / all.height, 1), event);
      if (!found) return this.hide();
      [this.row, this.column] = found;
      this.show();
    }

    nearest(x, y, event) {
      if (this.about.kind === "grid") {
        const at = [Math.floor(y * this.rows.length), Math.floor(x * this.columns)];
        let [row, column] = [within(at[0], this.rows.length - 1), within(at[1], this.columns - 1)];
        while (column > 0 && !this.text(row, column)) column--;  // the last value stands until there is another
        return this.text(row, column) ? [row, column] : null;
      }
      if (this.about.kind === "marks") {
        const mark = event.target.closest(".m");
        return mark && mark.dataset.at.split(" ").map(Number);
      }
      let column = 0;
      this.places.forEach((place, n) => { if (Math.abs(place - x) < Math.abs(this.places[column] - x)) column = n; });
      let [row, least] = [null, Infinity];
      for (let n = 0; n < this.rows.length; n++) {
        const box = this.box(n, column);
        if (box && Math.abs(box[1] - y) < least) [row, least] = [n, Math.abs(box[1] - y)];
      }
      return row === null ? null : [row, column];
    }

    show() {
      if (!this.tip) {
        this.tip = document.createElement("div");
        this.tip.className = "tip";
        this.tip.setAttribute("aria-hidden", "true");
        this.cursor = document.createElement("div");
        this.area.append(this.cursor, this.tip);
      }
      const box = this.box(this.row, this.column);
      const [x, y, width, height] = box || [0, 0, 0, 0];
      this.cursor.className = this.about.kind === "lines" ? "cursor round" : "cursor";
      this.cursor.hidden = !box;
      this.cursor.style.left = 100 * x + "%";
      this.cursor.style.top = 100 * y + "%";
      if (this.about.kind !== "lines") {
        this.cursor.style.width = 100 * width + "%";
        this.cursor.style.height = 100 * height + "%";
      }
      this.tip.textContent = this.words();
      const all = this.area.getBoundingClientRect();
      const left = within((x + width / 2) * all.width - this.tip.offsetWidth / 2, all.width - this.tip.offsetWidth);
      const above = y * all.height - this.tip.offsetHeight - 12;
      this.tip.style.left = left + "px";
      this.tip.style.top = (above < -40 ? (y + height) * all.height + 12 : above) + "px";
    }

    hide() {
      if (this.tip) {
        this.tip.remove();
        this.cursor.remove();
        this.tip = null;
      }
    }
  }

  class Film {
    constructor(figure) {
      const about = figure.dataset;
      const strip = figure.querySelector(".strip");
      this.picture = strip.querySelector("img");
      this.columns = Number(about.columns);
      this.frames = Number(about.frames);
      this.wait = 1000 / Number(about.fps);
      this.canvas = document.createElement("canvas");
      [this.canvas.width, this.canvas.height] = [about.width, about.height];
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", strip.getAttribute("aria-label"));
      this.button = document.createElement("button");
      this.button.type = "button";
      this.slider = document.createElement("input");
      Object.assign(this.slider, { type: "range", min: 0, max: this.frames - 1, value: 0 });
      this.slider.setAttribute("aria-label", "Step of the episode");
      const keys = document.createElement("div");
      keys.className = "keys";
      keys.append(this.button, this.slider);
      strip.hidden = true;
      figure.append(this.canvas, keys);
      this.button.addEventListener("click", () => (this.timer ? this.pause() : this.play()));
      this.slider.addEventListener("input", () => { this.pause(); this.draw(); });
      calm.addEventListener("change", () => { if (calm.matches) this.pause(); });
      this.pause();
      this.picture.decode().then(() => this.draw());
    }

    play() {
      if (Number(this.slider.value) >= this.frames - 1) this.slider.value = 0;
      // Who wants little motion sees the steps one at a time, slowly.
      this.timer = setInterval(() => this.next(), calm.matches ? 1000 : this.wait);
      this.button.textContent = "Pause";
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      this.button.textContent = "Play";
    }

    next() {
      this.slider.value = Number(this.slider.value) + 1;
      this.draw();
      if (Number(this.slider.value) >= this.frames - 1) this.pause();
    }

    draw() {
      const { width, height } = this.canvas;
      const at = Number(this.slider.value);
      const from = [(at % this.columns) * width, Math.floor(at / this.columns) * height];
      this.canvas.getContext("2d").drawImage(this.picture, ...from, width, height, 0, 0, width, height);
      this.slider.setAttribute("aria-valuetext", `${at} of ${this.frames - 1}`);
    }
  }

  // A page that shows itself anew finds its theme and open tables as they were.
  const memory = {
    read(name) { try { return sessionStorage.getItem(name); } catch { return null; } },
    write(name, value) { try { sessionStorage.setItem(name, value); } catch { /* it is forgotten */ } },
  };
  const theme = (name) => { if (name) document.documentElement.dataset.theme = name; };
  theme(memory.read("theme"));
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    theme(dark ? "light" : "dark");
    memory.write("theme", dark ? "light" : "dark");
  });
  const open = new Set(JSON.parse(memory.read("open") || "[]"));

  // What many lives have to show is text in a noscript element until somebody opens it.
  const fill = (details, name) => {
    const text = details.querySelector(":scope > noscript");
    if (!text) return;
    const made = document.createElement("template");
    made.innerHTML = text.textContent;
    text.replaceWith(made.content);
    wake(details, name);
  };

  const wake = (root, name) => {
    root.querySelectorAll(".plot").forEach((plot) => new Chart(plot));
    root.querySelectorAll(".film").forEach((figure) => new Film(figure));
    root.querySelectorAll("details").forEach((details, number) => {
      const own = name + "/" + number;
      details.addEventListener("toggle", () => {
        if (details.open) open.add(own); else open.delete(own);
        memory.write("open", JSON.stringify([...open]));
        if (details.open) fill(details, own);
      });
      if (open.has(own)) {
        details.open = true;
        fill(details, own);
      }
    });
  };

  document.querySelector(".hint").hidden = false;
  wake(document, "");
})();
