"""What a tenant does not allow to be remembered."""
