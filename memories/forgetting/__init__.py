"""Forgetting: faded and expired memories go to the trash, and later they are deleted for good.

In: a tenant whose night has come. After its pass a model may review old facts (upkeep). Out: trashed, archived, merged
and deleted memories, with the counts of the pass in DecayPass.
"""
