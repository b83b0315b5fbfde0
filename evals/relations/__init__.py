"""Conversations told in this process, with a scripted model that states triples: what the graph holds of them."""
