"""Who can use the hub: API keys, operators, second factors, sign-ins and the counts that limit them."""
