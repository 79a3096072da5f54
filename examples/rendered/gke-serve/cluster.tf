# systole: serve-8b on gke, workload 111111111111
terraform {
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.45"
    }
  }
}

variable "project" {
  type    = string
  default = "my-lab-7"
}

resource "google_project_service" "compute" {
  project            = var.project
  service            = "compute.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_service" "container" {
  project            = var.project
  service            = "container.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_service" "iam" {
  project            = var.project
  service            = "iam.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_service" "logging" {
  project            = var.project
  service            = "logging.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_service" "monitoring" {
  project            = var.project
  service            = "monitoring.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_service" "storage" {
  project            = var.project
  service            = "storage.googleapis.com"
  disable_on_destroy = false
}

# Nodes have no address of the internet; they reach it through NAT, and Google directly.
resource "google_compute_network" "main" {
  project                 = var.project
  name                    = "serve"
  auto_create_subnetworks = false
  depends_on              = [google_project_service.compute]
}

resource "google_compute_subnetwork" "main" {
  project                  = var.project
  name                     = "serve"
  region                   = "us-central1"
  network                  = google_compute_network.main.id
  ip_cidr_range            = "10.0.0.0/20"
  private_ip_google_access = true

  secondary_ip_range {
    range_name    = "pods"
    ip_cidr_range = "10.4.0.0/14"
  }

  secondary_ip_range {
    range_name    = "services"
    ip_cidr_range = "10.8.0.0/20"
  }
}

resource "google_compute_router" "main" {
  project = var.project
  name    = "serve"
  region  = "us-central1"
  network = google_compute_network.main.id
}

resource "google_compute_router_nat" "main" {
  project                            = var.project
  name                               = "serve"
  region                             = "us-central1"
  router                             = google_compute_router.main.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"
}

resource "google_compute_firewall" "main" {
  project       = var.project
  name          = "serve-inside"
  network       = google_compute_network.main.id
  direction     = "INGRESS"
  source_ranges = ["10.0.0.0/20", "10.4.0.0/14"]

  allow {
    protocol = "tcp"
  }

  allow {
    protocol = "udp"
  }

  allow {
    protocol = "icmp"
  }
}

# Nodes may write logs and metrics and read images, no more.
resource "google_service_account" "nodes" {
  project      = var.project
  account_id   = "serve-nodes"
  display_name = "nodes of serve"
  depends_on   = [google_project_service.iam]
}

resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/container.defaultNodeServiceAccount"
  member  = google_service_account.nodes.member
}

resource "google_container_cluster" "main" {
  project            = var.project
  name               = "serve"
  location           = "us-central1-a"
  network            = google_compute_network.main.id
  subnetwork         = google_compute_subnetwork.main.id
  initial_node_count = 1
  datapath_provider  = "ADVANCED_DATAPATH"
  resource_labels = {
    "managed-by"      = "systole"
    "systole-made-by" = "serve-8b"
  }
  deletion_protection = false
  depends_on          = [google_project_service.container, google_project_iam_member.nodes]

  release_channel {
    channel = "REGULAR"
  }

  private_cluster_config {
    enable_private_nodes = true
  }

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  workload_identity_config {
    workload_pool = "${var.project}.svc.id.goog"
  }

  addons_config {
    gcs_fuse_csi_driver_config {
      enabled = true
    }
  }

  node_config {
    machine_type    = "n1-standard-4"
    disk_size_gb    = 100
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = {
      "managed-by"      = "systole"
      "systole-made-by" = "serve-8b"
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }
}

resource "google_container_node_pool" "serve_8b" {
  project            = var.project
  name               = "serve-8b"
  cluster            = google_container_cluster.main.name
  location           = "us-central1-a"
  node_locations     = ["us-central1-a"]
  initial_node_count = 3

  autoscaling {
    min_node_count = 3
    max_node_count = 7
  }

  node_config {
    machine_type    = "g2-standard-12"
    disk_size_gb    = 100
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = {
      "systole-run" = "serve-8b"
    }
    image_type = "COS_CONTAINERD"

    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    guest_accelerator {
      type  = "nvidia-l4"
      count = 1

      gpu_driver_installation_config {
        gpu_driver_version = "LATEST"
      }
    }

    gvnic {
      enabled = true
    }
  }
}

resource "google_storage_bucket" "my_models" {
  project                     = var.project
  name                        = "my-models"
  location                    = "us-central1"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  labels = {
    "systole-run" = "serve-8b"
  }
  depends_on = [google_project_service.storage]

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }

    condition {
      age = 7
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }

    condition {
      days_since_noncurrent_time = 30
    }
  }
}

# The job is this account to Google, without a key.
resource "google_service_account_iam_member" "job" {
  service_account_id = "projects/my-lab-7/serviceAccounts/server@my-lab-7.iam.gserviceaccount.com"
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project}.svc.id.goog[serving/serve-8b]"
  depends_on         = [google_container_cluster.main]
}
