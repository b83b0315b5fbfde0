"""What each store does: how its rows are counted, given out, erased and looked at afterwards."""
