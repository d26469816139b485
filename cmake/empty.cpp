// Stands in for a helper library that so far is headers only.
