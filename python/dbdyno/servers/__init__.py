"""Finding, provisioning and starting database servers."""
