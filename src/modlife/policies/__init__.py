"""Who answers: layers, the module bank, and the networks made of them."""
