"""Real clients, pinned, in conversations of their own through the gateway: `make clients-suite`, not `make test`."""
