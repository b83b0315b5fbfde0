"""Memory Hub's one Django app, laid out as the data flows.

POST /turns ── api ── pipeline.ingest ── Turn rows + the session's queue row (one transaction)
                                            │ due
schedules (sweep) ── tasks ── pipeline.consolidation
                                ├─ pipeline.debounce    claim: lease, token, attempt
                                ├─ pipeline.extraction  gather, prompt ── llm
                                ├─ pipeline.gate        what may be kept, and with which trust
                                └─ pipeline.reconcile   one short, fenced transaction
POST /context ── api ── pipeline.context ── <memory> inside a token budget
browser ── admin ── curation ── the same rows, with revisions and audit events
"""
