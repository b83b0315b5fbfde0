"""Access: operators, groups, API keys, passwords, second factors, sign-in, and the tenants that an operator sees."""
