"""What all lists share: the change list, columns, cells, tabs, saved filters, export."""
