"""What is known of each kind (Pod, Job, bare Workload, ...), one file each, pure, used by both ends."""
