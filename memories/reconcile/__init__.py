"""Reconcile: what an extraction found is held against the existing facts, in one short transaction.

The gate decides which candidates may be kept, neighbours and judgement find existing facts that mean the same or the
opposite, and the decision table says what becomes of each. In: a batch and a model's answer. It writes Fact,
FactEvidence, FactRevision, FactRelation, ProfileSection, ProfileRevision and ReviewItem.
"""
