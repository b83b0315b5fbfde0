"""How a verification looks: tables of the catalogue, decoding, needles, and what a find means."""
