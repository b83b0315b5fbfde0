"""What all pages share: the site, base classes, sidebar, palette, middleware, form fields, names and words."""
