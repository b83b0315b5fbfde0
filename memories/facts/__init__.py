"""Facts: what all roads to a fact share, whoever states it: where it belongs in time, and the questions for review.

In: candidates. It writes Fact, FactEvidence, FactRelation, FactRevision, FactRefusal and ReviewItem.
"""
