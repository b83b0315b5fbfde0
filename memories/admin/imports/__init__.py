"""Imports: the list, uploading a file, and the page of an import with its dry run, its progress and its report."""
