"""What keys and operators do to the graph of a person. Triples of facts change with their facts alone."""
