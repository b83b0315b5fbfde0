"""Privacy cases, retention and the audit trail."""
