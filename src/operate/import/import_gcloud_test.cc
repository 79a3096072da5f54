// gcloud lines: each flag becomes a key, or is reported; lists in both spellings; and the command can be recreated.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "operate/import/shell_words.h"
#include "operate/import/testing/imported.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

std::string job(const std::string& flags) {
  return "gcloud ai custom-jobs create --display-name=j "
         "--worker-pool-spec=replica-count=1,container-image-uri=r/i:1 " +
         flags;
}

TEST(ImportGcloudLists, are_cut_as_gcloud_cuts_them) {
  for (const auto& [flags, command] : std::vector<std::pair<std::string, Words>>{
           {"--command=python3,-m,t.task --args=--epochs=10 --args=--batch=128",
            {"python3", "-m", "t.task", "--epochs=10", "--batch=128"}},
           {"--command=python3 --command=t.py --args=--a,--b=1", {"python3", "t.py", "--a", "--b=1"}},
           {"--command=python3,t.py --args='^;^--a=1,2;--b'", {"python3", "t.py", "--a=1,2", "--b"}},
           {"--command='^::^python3::t,.py' --args ^@^--x,y@-z", {"python3", "t,.py", "--x,y", "-z"}},
           {"--command=sh,-c,'torchrun --nproc-per-node=2 t.py'", {"python3", "-u", "t.py"}},
           {"--command=torchrun --args=--nproc-per-node=2,t.py,--lr,1", {"python3", "-u", "t.py", "--lr", "1"}},
           {"--command='python train.py' --args='--epochs=10,--batch-size=64'",
            {"python", "train.py", "--epochs=10", "--batch-size=64"}}})
    EXPECT_EQ(workload_of(job(flags)).command, command) << flags;
  const Workload w = workload_of(
      "gcloud ai custom-jobs create --worker-pool-spec='^;^machine-type=n1-standard-4;accelerator-type=NVIDIA_TESLA_T4;"
      "accelerator-count=1;replica-count=4;container-image-uri=r/i:1' --command=python3,t.py");
  EXPECT_EQ(w.resources.nodes, (CountRange{4, 4}));
  EXPECT_EQ(w.resources.gpus_per_node, 1);
  EXPECT_EQ(w.resources.accelerators, "t4:4");
  EXPECT_NE(refused(job("--args=--a")).find("the image's own program"), std::string::npos);
}

TEST(ImportGcloudLists, pools_that_are_alike_are_nodes) {
  const std::string pool = "--worker-pool-spec=machine-type=a2-highgpu-1g,container-image-uri=r/i:1,replica-count=";
  const Workload w = workload_of("gcloud ai custom-jobs create " + pool + "1 " + pool + "3 --command=python3,t.py");
  EXPECT_EQ(w.resources.nodes, (CountRange{4, 4}));
  EXPECT_NE(refused("gcloud ai custom-jobs create " + pool +
                    "1 --worker-pool-spec=machine-type=n1-standard-4,container-image-uri=r/i:1 --command=python3,t.py")
                .find("another kind of machine"),
            std::string::npos);
  EXPECT_EQ(workload_of("gcloud ai custom-jobs create --worker-pool-spec=machine-type=n1-standard-4,"
                        "executor-image-uri=r/e:1,local-package-path=.,script=task.py --args=--a=1")
                .command,
            (Words{"python3", "task.py", "--a=1"}));
}

TEST(ImportGcloudJobs, say_labels_and_their_account_in_keys) {
  const std::string line =
      job("--command=python3,t.py --labels=team=vision,stage=dev --network=projects/1/global/n "
          "--service-account=trainer@my-lab-7.iam.gserviceaccount.com --enable-web-access");
  const Workload w = workload_of(line);
  EXPECT_EQ(w.labels, (std::map<std::string, std::string>{{"stage", "dev"}, {"team", "vision"}}));
  EXPECT_EQ(w.kubernetes.gcp_service_account, "trainer@my-lab-7.iam.gserviceaccount.com");
  EXPECT_NE(why(imported(line), "--network").find("gke.network"), std::string::npos);
  EXPECT_NE(why(imported(line), "--enable-web-access").find("no terminal"), std::string::npos);
  for (const char* account : {"1-compute@developer.gserviceaccount.com", "Trainer@my-lab-7.iam.gserviceaccount.com",
                              "-t@my-lab-7.iam.gserviceaccount.com", "t@a@my-lab-7.iam.gserviceaccount.com"}) {
    const std::string other = job(std::string("--command=python3,t.py --service-account=") + account);
    EXPECT_NE(why(imported(other), "--service-account").find("kubernetes.gcp_service_account"), std::string::npos)
        << account;
  }
}

// A file system created by a line becomes a volume of the program beside it.
TEST(ImportGcloudFilestore, is_a_volume) {
  const auto line = [](const std::string& tier, const std::string& capacity) {
    return "gcloud filestore instances create torchrec-filestore --zone us-central1-a --tier " + tier +
           " --file-share name=torchrec_data,capacity=" + capacity + " --network name=default --protocol=NFS_V3\n" +
           "torchrun --nproc-per-node=8 train.py --dataset_path /mnt/torchrec_data/criteo";
  };
  for (const auto& [tier, capacity, volume, size] :
       std::vector<std::tuple<std::string, std::string, std::string, Bytes>>{
           {"HIGH_SCALE_SSD", "10TB", "zonal", 10 * 1024 * kGiB},
           {"ZONAL", "2560", "zonal", 2560 * kGiB},
           {"regional", "1TB", "regional", 1024 * kGiB},
           {"ENTERPRISE", "1024GB", "regional", 1024 * kGiB},
           {"BASIC_HDD", "1TiB", "basic-hdd", 1024 * kGiB},
           {"BASIC_SSD", "2560GiB", "basic-ssd", 2560 * kGiB}}) {
    const Workload w = workload_of(line(tier, capacity));
    ASSERT_TRUE(w.volumes.contains("/mnt/torchrec_data")) << tier;
    const VolumeSpec& made = w.volumes.at("/mnt/torchrec_data");
    EXPECT_EQ(made.kind, VolumeSpec::Kind::filestore);
    EXPECT_EQ(made.of, volume) << tier;
    EXPECT_EQ(made.size, size) << capacity;
  }
  const Imported made = imported(line("HIGH_SCALE_SSD", "10TB"));
  EXPECT_NE(why(made, "--network name=default").find("gke.network"), std::string::npos);
  EXPECT_NE(why(made, "--zone us-central1-a").find("gke.location"), std::string::npos);
  EXPECT_TRUE(tells(made, "--protocol"));
  EXPECT_TRUE(notes(made, "--file-share")) << "where it is mounted is a guess";
  const std::string share = "--file-share name=torchrec_data,capacity=";
  const std::string capacity = ": the capacity is no whole number of GB or TB | --file-share=name=data,capacity=10TB\n";
  const std::string tier = "--tier TAPE: no tier of Filestore's | --tier=ZONAL\n";
  EXPECT_EQ(refused(line("TAPE", "10TB")), tier);
  EXPECT_EQ(refused(line("ZONAL", "much")), share + "much" + capacity);
  EXPECT_EQ(refused(line("ZONAL", "1.5TiB")), share + "1.5TiB" + capacity);
  EXPECT_EQ(refused(line("TAPE", "1.5TiB")), tier + share + "1.5TiB" + capacity);
  EXPECT_EQ(refused("gcloud filestore instances create f --tier=ZONAL --file-share=name=a-b,capacity=1TB"),
            "--file-share=name=a-b,capacity=1TB: the name is no folder's: letters, digits and '_' | "
            "--file-share=name=data,capacity=10TB\n");
}

// Mounts in the script, before the program, become the workload's.
TEST(ImportMounts, are_volumes) {
  const Workload w = workload_of(
      "DATA=/data\nsudo mount -t nfs -o ro,nolock 10.0.0.2:/vol1 /mnt/filestore/\nmount server:/out /out\n"
      "gcsfuse --implicit-dirs corpus $DATA\nsudo mount /dev/sdb /scratch\n"
      "gsutil -m cp -r ./criteo gs://corpus/criteo/\ntorchrun --nproc-per-node=8 train.py");
  EXPECT_EQ(w.volumes.size(), 3U);
  EXPECT_EQ(w.volumes.at("/mnt/filestore"),
            (VolumeSpec{.kind = VolumeSpec::Kind::nfs, .of = "10.0.0.2:/vol1", .read_only = true}));
  EXPECT_EQ(w.volumes.at("/out"), (VolumeSpec{.kind = VolumeSpec::Kind::nfs, .of = "server:/out"}));
  EXPECT_EQ(w.volumes.at("/data"), (VolumeSpec{.kind = VolumeSpec::Kind::bucket, .of = "corpus"}));
  const Imported made = imported("mount /dev/sdb /scratch\nmount -a\nmount $X:/a /b\npython3 train.py");
  EXPECT_NE(why(made, "mount /dev/sdb").find("hyperdisk"), std::string::npos);
  EXPECT_TRUE(tells(made, "mount -a"));
  EXPECT_TRUE(tells(made, "mount $X:/a /b"));
  EXPECT_NE(refused("mount server:/out /out"), "") << "it starts no program";
}

// Options of mount may be anywhere in the line, and may also name what is mounted.
TEST(ImportMounts, are_read_by_their_options) {
  const auto mounted = [](const std::string& line) { return workload_of(line + "\npython3 train.py").volumes; };
  for (const bool read_only : {false, true}) {
    const std::map<std::string, VolumeSpec> volumes = {
        {"/mnt/data", {.kind = VolumeSpec::Kind::nfs, .of = "10.0.0.2:/data", .read_only = read_only}}};
    for (const char* line :
         {"mount -t nfs 10.0.0.2:/data /mnt/data -o ", "mount -onolock, 10.0.0.2:/data /mnt/data -o ",
          "mount --source 10.0.0.2:/data --target /mnt/data --options=",
          "mount --target=/mnt/data --source=10.0.0.2:/data -t nfs4 -o nolock,",
          "mount 10.0.0.2:/data --target /mnt/data/ -v -o "})
      EXPECT_EQ(mounted(std::string(line) + (read_only ? "ro" : "rw")), volumes) << line;
    EXPECT_EQ(mounted(std::string(read_only ? "mount -vr" : "mount -v") + " 10.0.0.2:/data /mnt/data"), volumes);
  }
  EXPECT_EQ(mounted("gcsfuse corpus /data --uid 1000").at("/data").of, "corpus");
  for (const char* line : {"mount --bind /a:/b /mnt/c", "mount -B /a:/b /mnt/c", "mount -o ro,bind /a:/b /mnt/c"}) {
    EXPECT_TRUE(mounted(line).empty()) << line;
    EXPECT_NE(why(imported(std::string(line) + "\npython3 t.py"), line).find("a folder of one machine"),
              std::string::npos)
        << line;
  }
  EXPECT_NE(why(imported("mount -L data /data\npython3 t.py"), "mount -L").find("hyperdisk"), std::string::npos);
  const Imported made = imported("gcsfuse --only-dir a --later=1 corpus /data\npython3 t.py");
  EXPECT_NE(why(made, "--only-dir a").find("whole"), std::string::npos) << made.yaml;
  EXPECT_TRUE(tells(made, "--later"));
}

TEST(ImportMounts, are_seen_behind_wrappers) {
  for (const char* wrapper : {"time ", "nohup ", "timeout 60 ", "env A=b ", "ionice -c 3 env A=b ", "sudo ", "sudo -E ",
                              "sudo -n -u root ", "sudo --user=root -- ", "sudo A=b ", "time sudo -g disk nice "}) {
    const Workload w = workload_of(wrapper + std::string("mount 10.0.0.2:/d /mnt/d\npython3 train.py"));
    EXPECT_EQ(w.volumes,
              (std::map<std::string, VolumeSpec>{{"/mnt/d", {.kind = VolumeSpec::Kind::nfs, .of = "10.0.0.2:/d"}}}))
        << wrapper;
  }
}

// For each line that neither creates machines nor starts a program, a message names the equivalent command or key.
TEST(ImportGcloudTold, each_command_has_a_reason_of_its_own) {
  for (const auto& [line, part] : std::vector<std::pair<std::string, std::string>>{
           {"gcloud auth login", "as whom gcloud speaks"},
           {"gcloud config set project my-lab-7", "gcloud.project"},
           {"gcloud services enable container.googleapis.com file.googleapis.com", "cluster.sh"},
           {"gcloud services list --enabled --filter=name:compute.googleapis.com", "systole runs"},
           {"gcloud container clusters get-credentials torchrec-gke --zone us-central1-a", "cluster.sh"},
           {"gcloud compute regions describe us-central1 --format=\"table(quotas)\"", "quotas"},
           {"gcloud compute instances list --filter=name=vm", "systole runs"},
           {"gcloud compute instances delete vm --zone=us-central1-a --quiet", "systole render --on gcloud"},
           {"gcloud compute tpus tpu-vm list --zone=us-central2-b", "systole runs"},
           {"gcloud ai custom-jobs stream-logs 1 --region=us-central1", "systole logs"},
           {"gcloud ai custom-jobs cancel 1 --region=us-central1", "systole stop"},
           {"gcloud ai custom-jobs describe 1 --region=us-central1", "systole why"},
           {"gcloud storage buckets create gs://b --location=us-central1 --uniform-bucket-level-access", "volumes"},
           {"gcloud storage cp ./output.txt gs://b/runs/", "copied by hand"},
           {"gcloud compute instances create-with-container vm1 --container-image=r/i:1", "image names the container"},
           {"gcloud container clusters create-auto c --region=us-central1", "systole render --on gke"},
           {"gcloud billing budgets list", "systole runs"}}) {
    const Imported made = imported(line + "\npython3 train.py");
    EXPECT_NE(why(made, line.substr(0, 30)).find(part), std::string::npos) << line << "\n" << made.yaml;
  }
  // An unknown flag of a line that is left out is reported, too.
  const Imported budget = imported("gcloud billing budgets create --budget-amount=9USD --later=1\npython3 train.py");
  EXPECT_NE(why(budget, "--budget-amount").find("objective.budget"), std::string::npos);
  EXPECT_TRUE(tells(budget, "--later"));
  const Imported cluster = imported("gcloud container clusters create c --zone=us-central1-a --enable-x\npython3 t.py");
  EXPECT_NE(why(cluster, "--zone").find("gke.location"), std::string::npos);
  EXPECT_TRUE(tells(cluster, "--enable-x"));
}

// A command's words, unordered: flags and their values.
std::multiset<std::string> flags_of(const std::string& text) {
  std::multiset<std::string> flags;
  for (const ShellCommand& command : read_shell(text, "f").value()) {
    if (command.words.empty() || command.words[0].text != "gcloud") continue;
    for (std::size_t w = 0; w < command.words.size(); ++w) {
      std::string word = command.words[w].text;
      const bool apart = word.starts_with("--") && word.find('=') == word.npos && w + 1 < command.words.size() &&
                         !command.words[w + 1].text.starts_with("--");
      flags.insert(apart ? word + "=" + command.words[++w].text : word);
    }
  }
  return flags;
}

Result<Rendered> rendered(const Workload& w) {
  return render(
      {.target = find_job_target_row("gcloud"), .workload = w, .facts = builtin_facts(), .place = "rendered"});
}

const std::vector<std::string> kMakers = {
    "gcloud compute instances create gpu-training-vm --zone=us-central1-a --machine-type=a2-highgpu-4g "
    "--accelerator=type=nvidia-tesla-a100,count=4 --image-family=pytorch-latest-gpu "
    "--image-project=deeplearning-platform-release --boot-disk-size=200GB --maintenance-policy=TERMINATE "
    "--metadata=\"install-nvidia-driver=True\"",
    "gcloud compute instances create spot-gpu-vm --zone=us-central1-a --machine-type=a2-highgpu-4g "
    "--accelerator=type=nvidia-tesla-a100,count=4 --provisioning-model=SPOT --instance-termination-action=STOP "
    "--image-family=pytorch-latest-gpu --image-project=deeplearning-platform-release",
    "VM_NAME=vm\nZONE=us-central1-a\ngcloud compute instances create \"${VM_NAME}\" --zone=\"${ZONE}\" "
    "--machine-type=\"g2-standard-4\" --maintenance-policy=TERMINATE --provisioning-model=SPOT "
    "--instance-termination-action=STOP --boot-disk-size=\"200GB\" --image-family=\"debian-12\" "
    "--image-project=\"debian-cloud\" --metadata=install-nvidia-driver=True "
    "--scopes=\"https://www.googleapis.com/auth/cloud-platform\"",
    "gcloud compute tpus tpu-vm create my-tpu --zone=us-central2-b --accelerator-type=v4-8 "
    "--version=tpu-vm-tf-2.14.0",
    "gcloud compute tpus tpu-vm create my-tpu --zone=us-central2-b --accelerator-type=v4-8 --version=x --spot "
    "--project=my-lab-7",
    "gcloud container node-pools create gpu-pool --cluster=ml-cluster --zone=us-central1-a "
    "--machine-type=a2-highgpu-4g --accelerator=type=nvidia-tesla-a100,count=4 --num-nodes=2 --enable-autoscaling "
    "--min-nodes=0 --max-nodes=4",
    "gcloud container node-pools create gpu-pool --cluster torchrec-gke --zone us-central1-a --machine-type "
    "a2-highgpu-8g --accelerator type=nvidia-tesla-a100,count=8 --num-nodes 2 --min-nodes 1 --max-nodes 4 "
    "--enable-autoscaling",
    "gcloud container node-pools create gpu-preemptible --cluster torchrec-gke --zone us-central1-a --machine-type "
    "a2-highgpu-8g --accelerator type=nvidia-tesla-a100,count=8 --num-nodes 2 --preemptible",
    "gcloud container clusters create ml-cluster --zone=us-central1-a --num-nodes=1 --machine-type=n1-standard-4",
    "gcloud container clusters create torchrec-gke --zone us-central1-a --machine-type n1-standard-4 --num-nodes 1 "
    "--enable-ip-alias",
    "gcloud container node-pools create p --cluster=c --region=us-central1 --machine-type=n1-standard-8 "
    "--accelerator=type=nvidia-tesla-t4,count=2 --num-nodes=3 --spot --node-labels=a=b,c=d "
    "--additional-node-network=network=x,subnetwork=y --additional-node-network=network=z,subnetwork=w",
    "gcloud compute instances create r --zone=z --machine-type=a3-highgpu-8g --reservation-affinity=specific "
    "--reservation=mine --network=default --metadata='^;^a=1,2;b=3'",
    "gcloud container clusters create c --project=my-lab-7 --region=us-central1 --num-nodes=3 "
    "--machine-type=e2-standard-4 --disk-size=100 --network=n --spot",
    "gcloud container node-pools create p --cluster=c --zone=us-central1-a --machine-type=g2-standard-4 "
    "--enable-autoscaling --total-min-nodes=0 --total-max-nodes=8 --disk-size=200 --disk-type=pd-ssd "
    "--image-type=COS_CONTAINERD --spot",
    "gcloud compute tpus tpu-vm create t --zone=us-east5-a --accelerator-type=v5p-8 --version=v2-alpha-tpuv5 "
    "--network=n --subnetwork=s --preemptible",
    "gcloud compute instances create n --zone=us-central1-a --machine-type=n1-standard-8 "
    "--accelerator=type=nvidia-tesla-t4,count=2 --image-family=common-cu124 "
    "--image-project=deeplearning-platform-release --boot-disk-size=100GB --boot-disk-type=pd-ssd "
    "--create-disk=name=d,size=200GB --disk=name=old --network=default --subnet=s --no-address --preemptible",
    "gcloud compute instances create k --zone=us-central1-a --machine-type=a2-highgpu-1g --no-boot-disk-auto-delete "
    "--no-restart-on-failure --no-shielded-secure-boot --no-scopes --no-service-account",
    "gcloud container node-pools create p --cluster=c --zone=us-central1-a --machine-type=a2-highgpu-8g --num-nodes=2 "
    "--no-enable-autoscaling --no-enable-autorepair --no-enable-autoupgrade"};

TEST(ImportGcloudMachines, come_back_as_the_command_that_was_pasted) {
  for (const std::string& line : kMakers) {
    const Imported made = imported(line);
    const Workload w = read_workload(made.yaml, "f").value();
    EXPECT_EQ(w.kind, Workload::Kind::machines);
    EXPECT_TRUE(made.left_out.empty()) << made.yaml;
    EXPECT_NE(made.missing.find("command: [python3, train.py]"), std::string::npos);
    const Result<Rendered> back = rendered(w);
    ASSERT_TRUE(back.ok()) << to_string(back.error()) << made.yaml;
    const std::string& text = back->files.front().text;
    std::string said = line;
    for (const auto& [name, value] : {std::pair("\"${VM_NAME}\"", "vm"), std::pair("\"${ZONE}\"", "us-central1-a")})
      if (const std::size_t at = said.find(name); at != said.npos) said.replace(at, std::string(name).size(), value);
    EXPECT_EQ(flags_of(text), flags_of(said)) << text << made.yaml;
  }
}

TEST(ImportGcloudMachines, are_said_in_keys) {
  const Workload vm = workload_of(kMakers[1]);
  EXPECT_EQ(vm.resources.accelerators, "a2-highgpu-4g:1");
  EXPECT_EQ(vm.resources.gpus_per_node, 4);
  EXPECT_EQ(vm.resources.provisioning, Provisioning::spot);
  EXPECT_EQ(vm.gcloud.zone, "us-central1-a");
  EXPECT_EQ(vm.gcloud.machine, "a2-highgpu-4g");
  EXPECT_EQ(vm.gcloud.options.at("instance-termination-action"), "STOP");
  EXPECT_EQ(workload_of(kMakers[3]).resources.accelerators, "v4-8");
  const Workload pool = workload_of(kMakers[5]);
  EXPECT_EQ(pool.resources.accelerators, "a2-highgpu-4g:4");
  EXPECT_EQ(pool.resources.nodes, (CountRange{1, 4}));
  EXPECT_EQ(pool.gke.cluster, "ml-cluster");
  EXPECT_EQ(pool.gke.location, "us-central1-a");
  EXPECT_EQ(pool.gke.machine, "a2-highgpu-4g");
  EXPECT_EQ(workload_of(kMakers[7]).resources.provisioning, Provisioning::spot) << "preemptible is spot's old name";
  EXPECT_EQ(workload_of(kMakers[10]).resources.accelerators, "t4:6");
  EXPECT_EQ(workload_of(kMakers[11]).resources.reservation, "mine");
  // Combined with a program, they are its machines.
  const Workload both = workload_of(kMakers[7] + "\ntorchrun --nnodes=2 --nproc-per-node=8 train.py");
  EXPECT_EQ(both.kind, Workload::Kind::train);
  EXPECT_EQ(both.resources.accelerators, "a2-highgpu-8g:2");
  EXPECT_TRUE(rendered(both).ok());
  EXPECT_NE(refused("gcloud container node-pools create p --cluster=c --num-nodes=9 --min-nodes=1 --max-nodes=4 "
                    "--enable-autoscaling")
                .find("--num-nodes=9: it is outside of"),
            std::string::npos);
}

// --no-X is accepted only for an --X without a value.
TEST(ImportGcloudMachines, flags_are_negated) {
  const std::string line = "gcloud compute instances create vm --zone=us-central1-a --machine-type=a2-highgpu-1g ";
  EXPECT_NE(why(imported(line + "--no-user-output-enabled"), "--no-user-output-enabled").find("gcloud shows things"),
            std::string::npos);
  const Workload w = workload_of(line + "--preemptible --no-preemptible");
  EXPECT_NE(w.resources.provisioning, Provisioning::spot) << "the last one counts";
  EXPECT_TRUE(w.gcloud.options.contains("no-preemptible"));
  for (const char* flag : {"--no-machine-type", "--no-spot=1", "--no-such"})
    EXPECT_NE(refused(line + flag).find("gcloud has no such flag"), std::string::npos) << flag;
  EXPECT_NE(refused("srun --no-contiguous python3 a.py").find("srun has no such flag"), std::string::npos);
}

TEST(ImportGcloudMachines, of_several_names_are_refused_once) {
  EXPECT_EQ(refused("gcloud compute instances create a b --zone=us-central1-a"),
            "gcloud compute instances create: it makes several; a workload says one | paste the line with one name\n");
}

// gcloud's global flags may also precede the command.
TEST(ImportGcloudMachines, are_seen_behind_flags) {
  const std::string rest = " compute instances create vm --zone=us-central1-a --machine-type=a2-highgpu-4g";
  for (const char* begin : {"gcloud --project=my-lab-7", "gcloud --project my-lab-7 --quiet beta",
                            "P=my-lab-7\ngcloud --verbosity=error --project \"$P\" -q alpha"}) {
    const Workload w = workload_of(begin + rest);
    EXPECT_EQ(w.gcloud.create, GcloudSpec::Create::instances) << begin;
    EXPECT_EQ(w.gcloud.name, "vm") << begin;
    EXPECT_EQ(w.gcloud.project, "my-lab-7") << begin;
  }
  const Imported beside = imported(
      "gcloud container clusters create c --zone=z --machine-type=e2-standard-4\n"
      "gcloud --quiet container node-pools create p --cluster=c --zone=z "
      "--machine-type=a2-highgpu-8g --num-nodes=2");
  EXPECT_TRUE(tells(beside, "gcloud container clusters create")) << beside.yaml;
  const Imported told = imported("gcloud --quiet services enable a.googleapis.com\npython3 t.py");
  EXPECT_NE(why(told, "gcloud --quiet services").find("cluster.sh"), std::string::npos) << told.yaml;
  EXPECT_EQ(told.left_out.size(), 1U) << "the flag goes with its line";
}

// Wrappers before gcloud are not part of its line, and neither is a variable that names it.
TEST(ImportGcloudMachines, are_seen_behind_wrappers) {
  const std::string flags = " compute instances create vm --zone=us-central1-a --machine-type=a2-highgpu-4g";
  for (const char* begin : {"time gcloud", "nohup gcloud", "timeout 60 gcloud", "env A=b gcloud", "G=gcloud\n$G"}) {
    const Workload w = workload_of(begin + flags + "\npython3 train.py");
    EXPECT_EQ(w.gcloud.name, "vm") << begin;
    EXPECT_EQ(w.gcloud.machine, "a2-highgpu-4g") << begin;
  }
  const std::string cluster = "gcloud container clusters create c --zone=z --machine-type=e2-standard-4\ntime ";
  const Imported beside = imported(cluster + kMakers[7]);
  EXPECT_TRUE(tells(beside, "gcloud container clusters create")) << beside.yaml;
}

TEST(ImportSbatch, is_seen_behind_wrappers) {
  const Workload w = workload_of("time sbatch -N2 --wrap='srun python3 train.py'");
  EXPECT_EQ(w.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(w.command, (Words{"python3", "train.py"}));
}

TEST(ImportGcloudMachines, are_refused_where_resources_say_others) {
  Workload w = workload_of(kMakers[0]);
  w.resources.accelerators = "h100:8";
  const Result<Rendered> other = rendered(w);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "the command makes a2-highgpu-4g:1, and resources.accelerators says h100:8");
  const Result<Rendered> slurm =
      render({.target = find_job_target_row("slurm"), .workload = w, .facts = builtin_facts(), .place = "rendered"});
  ASSERT_FALSE(slurm.ok());
  EXPECT_NE(slurm.error().message.find("nothing runs on them"), std::string::npos);
  const Result<Workload> both = read_workload(
      "systole: 1\nname: a\nworkload: machines\ncommand: x\ngcloud: { create: instances, name: a }\n", "f");
  EXPECT_FALSE(both.ok());
  EXPECT_FALSE(read_workload("systole: 1\nname: a\nworkload: machines\n", "f").ok());
  EXPECT_FALSE(read_workload("systole: 1\nname: a\nworkload: machines\nmodel: { family: gpt }\n"
                             "gcloud: { create: instances, name: a }\n",
                             "f")
                   .ok());
}

}  // namespace
}  // namespace systole
