"""What `CostTracking` stands on: prices, budgets, and the stores that keep what is spent."""
