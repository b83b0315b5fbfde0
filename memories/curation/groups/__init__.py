"""Groups of people: who belongs to them, and what their members state. Writes groups, members, facts and evidence.

Lock order: the people, in the order of their ids, then the group, then its facts. An erasure takes the group alone.
"""
