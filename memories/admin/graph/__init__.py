"""The graph of a person: triples, and the page that draws them."""
