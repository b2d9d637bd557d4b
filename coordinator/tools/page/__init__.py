"""The page of `coop-kafka ui`: looks at groups in a browser, and changes nothing."""
