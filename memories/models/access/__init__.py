"""Who gets in: keys, operators, roles, sign-ins; and what their requests leave."""
