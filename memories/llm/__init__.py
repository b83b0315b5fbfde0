"""The language model: counting tokens, writing prompts, asking an endpoint, reading its answer."""
