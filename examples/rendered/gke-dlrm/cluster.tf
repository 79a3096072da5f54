# systole: dlrm on gke, workload 111111111111
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

# Nodes have no address of the internet; they reach it through NAT, and Google directly.
resource "google_compute_network" "main" {
  project                 = var.project
  name                    = "recsys"
  auto_create_subnetworks = false
  depends_on              = [google_project_service.compute]
}

resource "google_compute_subnetwork" "main" {
  project                  = var.project
  name                     = "recsys"
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
  name    = "recsys"
  region  = "us-central1"
  network = google_compute_network.main.id
}

resource "google_compute_router_nat" "main" {
  project                            = var.project
  name                               = "recsys"
  region                             = "us-central1"
  router                             = google_compute_router.main.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"
}

resource "google_compute_firewall" "main" {
  project       = var.project
  name          = "recsys-inside"
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
  account_id   = "recsys-nodes"
  display_name = "nodes of recsys"
  depends_on   = [google_project_service.iam]
}

resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/container.defaultNodeServiceAccount"
  member  = google_service_account.nodes.member
}

resource "google_container_cluster" "main" {
  project            = var.project
  name               = "recsys"
  location           = "us-central1-a"
  network            = google_compute_network.main.id
  subnetwork         = google_compute_subnetwork.main.id
  initial_node_count = 1
  datapath_provider  = "ADVANCED_DATAPATH"
  resource_labels = {
    "managed-by"      = "systole"
    "systole-made-by" = "dlrm"
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

  node_config {
    machine_type    = "n1-standard-4"
    disk_size_gb    = 100
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = {
      "managed-by"      = "systole"
      "systole-made-by" = "dlrm"
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }
}

resource "google_container_node_pool" "dlrm" {
  project            = var.project
  name               = "dlrm"
  cluster            = google_container_cluster.main.name
  location           = "us-central1-a"
  node_locations     = ["us-central1-a"]
  initial_node_count = 1

  autoscaling {
    min_node_count = 1
    max_node_count = 4
  }

  node_config {
    machine_type    = "a2-highgpu-8g"
    disk_size_gb    = 100
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = {
      "systole-run" = "dlrm"
    }
    image_type = "COS_CONTAINERD"

    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    guest_accelerator {
      type  = "nvidia-tesla-a100"
      count = 8

      gpu_driver_installation_config {
        gpu_driver_version = "LATEST"
      }
    }

    gvnic {
      enabled = true
    }
  }

  placement_policy {
    type = "COMPACT"
  }
}
