"""What people change: every change by an operator, a key or a command is a named verb here.

A verb checks, locks, writes and records in one transaction: its rows, a revision of each fact and section that it
changes, and an audit event. Admin, API and commands call the same verbs; none of them writes by itself.

Where a verb is: `facts/`, `episodes`, `profile/`, `people/`, `sessions` and `tenants/` by what it changes; `review/`
for decisions about review items; `rollback/` for taking back what came of a session, agent, key or time; `access/` for
keys, operators and sign-ins; `retries`, `decay` and `exports` for what operators do about jobs and files.

`change_sets` keeps each change of an operator or a command, `reverting` takes one back, and `batches` are many of one
verb. `statements/` checks what keys state. `marks` notices that a form is out of date. `replays` deletes kept answers.
"""
