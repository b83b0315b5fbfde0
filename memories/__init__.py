"""Memory Hub's one Django app, laid out as the data flows.

POST /turns ── api ── capture ── Turn rows + the session's queue row (one transaction)
                                            │ due
jobs.broker (sweep) ── tasks ── extraction.consolidation
                                ├─ queue       claim: lease, token, attempt
                                ├─ extraction  gather, prompt ── llm
                                └─ reconcile   what may be kept, with which trust: one short, fenced transaction
                  ── tasks ── episodes.compaction    what leaves a window: running summary, episodes
                  ── tasks ── forgetting.decay       what fades or expires; upkeep
embedder ── embedding ── vectors of turns, facts, episodes
POST /context ── api ── context ── retrieval ── <memory> inside a token budget
browser ── admin ── curation ── the same rows, with revisions and audit events
"""
