"""Where answers come from; client.py picks one by name, as Django does for mail."""
