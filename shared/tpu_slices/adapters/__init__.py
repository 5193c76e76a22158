"""The only place where vendors are imported: each adapter makes calls and translates, and decides nothing."""
