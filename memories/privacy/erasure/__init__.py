"""What an erasure stands on: leases, the fence, patience with locks, what dead rows leave."""
