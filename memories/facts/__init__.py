"""Facts: the one road by which a statement becomes a fact, whoever states it (rules.md, 5.13).

`record` compares candidates with the person's `existing` facts, a pure `decision` follows the table of `policies`, and
the `writer` writes; all saved versions of facts pass `write`. In: candidates and a policy. It writes Fact,
FactEvidence, FactRelation, FactRevision, FactRefusal and ReviewItem.
"""
