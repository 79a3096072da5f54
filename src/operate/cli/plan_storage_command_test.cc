// Storage that follows from the feed, as users type it: planned, rendered, refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

class PlanStorage : public testing::Test {
 protected:
  PlanStorage() {
    systole_.shell("yes a line of text | head -c 9000000 > a.txt");  // more rows than a run of these takes
    write("{ cheapest: true }");
  }
  void write(const std::string& volume, const std::string& more = "") const {
    systole_.write("job.yaml",
                   "systole: 1\nname: tiny\nmodel: { family: llama, layers: 2, width: 32, heads: 2, kv_heads: 1, mlp: "
                   "64, context: 16, vocabulary: 288 }\ndata: { train: { files: a.txt }, folder: /data/tokens, "
                   "tokenizer: { vocabulary: 260 } }\ntrain: { batch: 200, steps: 1000, optimizer: { rate: 1e-3 }, "
                   "precision: { compute: bf16, reduce: bf16 } }\nfolder: /runs\nclaims: { /runs: runs }\nimage: "
                   "registry.example/train:1\ngke: { project: my-lab-7, cluster: train, location: us-central1-a }\n"
                   "volumes: { /data: " +
                       volume + " }\nresources: { accelerators: 'a2-highgpu-1g:1' }\n" + more);
  }
  Captured run(const std::string& line) const { return systole_.shell("$SYSTOLE " + line); }
  Node plan_file() const {
    return parse_json(read_text_file((systole_.folder() / "plan.json").string()).value(), "plan.json").value();
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  SystoleRunner systole_;
};

// The whole way: refused without a plan; planned with hardware and storage together; rendered as planned.
TEST_F(PlanStorage, follows_from_the_plan) {
  const Captured blind = run("render job.yaml --on gke");
  EXPECT_EQ(blind.exit.code, 2);
  EXPECT_TRUE(has(blind.err,
                  "volumes: /data: its tier and size follow from the feed, and the time of a step is unknown "
                  "without a plan"))
      << blind.err;
  EXPECT_TRUE(has(blind.err, "hint: systole plan job.yaml --on a2-highgpu-1g:1 --out plan.json; then render --plan"))
      << blind.err;
  EXPECT_EQ(run("check job.yaml").exit.code, 0) << "nothing else is wrong";

  const Captured plan = run("plan job.yaml --on a2-highgpu-1g:1 --objective cheapest --out plan.json");
  ASSERT_EQ(plan.exit.code, 0) << plan.err;
  EXPECT_TRUE(has(plan.out, "  storage /data: filestore zonal of 1.00 TiB, $0.35/h, in the dollars\n")) << plan.out;
  EXPECT_TRUE(has(plan.out, " old) and $0.35/h of storage, ")) << "what the dollars are of: " << plan.out;
  const Node document = plan_file();
  EXPECT_EQ(document.find("workload")->find("volumes")->find("/data")->find("filestore")->text(), "zonal");
  const double hour = document.find("cost")->find("dollars_per_hour")->as_double().value();
  const double machine =
      document.find("search")->find("offers")->items()[0].find("price")->find("dollars_per_hour")->as_double().value();
  EXPECT_NEAR(hour - machine, 0.25 * 1024 / 730, 1e-9) << "a budget counts both";
  EXPECT_NEAR(document.find("cost")->find("dollars")->as_double().value(),
              hour * document.find("search")->find("chosen")->find("total_seconds")->as_double().value() / 3600, 1e-9);

  const Captured made = run("render --plan plan.json --out there");
  ASSERT_EQ(made.exit.code, 0) << "the plan knows its target: " << made.err;
  EXPECT_TRUE(std::filesystem::exists(systole_.folder() / "there/cluster.tf"));
  const std::string job = read_text_file((systole_.folder() / "there/job.yaml").string()).value();
  for (const char* part : {"tier: zonal", "storage: 1024Gi", "filestore.csi.storage.gke.io"})
    EXPECT_TRUE(has(job, part)) << part << "\n" << job;
}

// Tokens a second and MFU are both of a step with what it waits for its rows.
TEST_F(PlanStorage, a_step_that_waits_has_fewer_tokens_a_second_and_less_mfu) {
  struct Seen {
    double tokens, mfu, step, waited, flops;
  };
  const auto planned = [&](const std::string& volumes) {
    const Captured plan =
        run("plan job.yaml --on a2-highgpu-1g:1 --out plan.json --set model.width=256 --set model.mlp=1024 "
            "--set train.batch=16384 --set train.steps=10 --set 'volumes=" +
            volumes + "'");
    EXPECT_EQ(plan.exit.code, 0) << plan.err;
    const Node document = plan_file();
    const Node& chosen = *document.find("search")->find("chosen");
    const auto number = [&](const char* key) {
      const Node* found = chosen.find(key);
      return found == nullptr ? 0 : found->as_double().value();
    };
    Seen seen{0, number("model_flops_utilisation"), number("step_seconds"), number("waited_seconds"),
              number("model_flops")};
    const std::size_t end = plan.out.find(" tokens/s"), begin = plan.out.rfind(' ', end - 1);
    seen.tokens = std::stod(plan.out.substr(begin, end - begin));
    const std::size_t mfu = plan.out.find("% MFU");
    EXPECT_NEAR(std::stod(plan.out.substr(plan.out.rfind(' ', mfu), 9)), 100 * seen.mfu, 0.051) << plan.out;
    EXPECT_DOUBLE_EQ(document.find("model_utilisation")->as_double().value(), seen.mfu);
    return seen;
  };
  const Seen fed = planned("{/data: none}"), starved = planned("{/data: {filestore: basic-hdd, size: 1TiB}}");
  EXPECT_EQ(fed.waited, 0);
  ASSERT_GT(starved.waited, starved.step) << "it starves";
  for (const Seen& seen : {fed, starved}) {
    const double tokens = 16384 * 16 / (seen.step + seen.waited);
    EXPECT_NEAR(seen.tokens / tokens, 1, 1e-3);
    // The same peak of the same chip, with whatever layout.
    EXPECT_NEAR(seen.mfu * (seen.step + seen.waited) / seen.flops / (fed.mfu * fed.step / fed.flops), 1, 1e-9);
  }
}

// Sizes are those that the catalog has of the tier.
TEST_F(PlanStorage, a_size_that_the_tier_does_not_offer_is_refused_at_its_place) {
  struct Case {
    const char *volume, *words, *hint;
  };
  for (const Case& each :
       {Case{"{ filestore: zonal, size: 900PiB }",
             ":10:45: error: volumes./data.size: filestore zonal has 1.00 TiB to 9.75 TiB, or 10.0 TiB to 100 TiB, and "
             "not 900 PiB",
             "hint: size: 102400GiB\n"},
        Case{"{ filestore: zonal, size: 10000GiB }", "and not 9.77 TiB", "hint: size: 9984GiB\n"},
        Case{"{ filestore: regional, size: 50GiB }", "filestore regional has 100 GiB to 100 TiB", "size: 100GiB\n"},
        Case{"{ filestore: basic-ssd, size: 1TiB }", "filestore basic-ssd has 2.50 TiB to 63.9 TiB", "size: 2560GiB\n"},
        Case{"{ parallelstore: new, size: 1TiB }", "parallelstore new has 11.7 TiB to 97.7 TiB", "size: 12000GiB\n"}}) {
    write(each.volume);
    for (const char* command : {"plan job.yaml --on a2-highgpu-1g:1", "check job.yaml", "render job.yaml --on gke"}) {
      const Captured refused = run(command);
      EXPECT_EQ(refused.exit.code, 2) << command << refused.out;
      EXPECT_TRUE(has(refused.err, "job.yaml:10:") && has(refused.err, each.words) && has(refused.err, each.hint))
          << command << "\n"
          << refused.err;
    }
  }
  for (const char* fine : {"{ filestore: zonal, size: 100TiB }", "{ filestore: zonal, size: 1TiB }",
                           "{ local_ssd: true, size: 100GiB }"}) {
    write(fine);
    EXPECT_EQ(run("plan job.yaml --on a2-highgpu-1g:1,kubernetes").exit.code, 0) << fine;
  }
}

// Disks of the machines are for pods of a cluster that is there, which somebody has to name: `volumes` alone mean
// every target with pods, of which gke makes nodes without such disks.
TEST_F(PlanStorage, local_disks_are_chosen_where_the_target_gives_them) {
  systole_.shell("sed -i /^gke:/d job.yaml");
  const auto storage = [&](const std::string& on) {
    const Captured plan = run("plan job.yaml --on a2-ultragpu-1g:1" + on);
    EXPECT_EQ(plan.exit.code, 0) << plan.err;
    const std::size_t at = plan.out.find("  storage /data: ");
    return at == plan.out.npos ? plan.out : plan.out.substr(at, plan.out.find('\n', at) - at);
  };
  EXPECT_TRUE(has(storage(",kubernetes"), "local_ssd")) << "it is the cheapest";
  EXPECT_FALSE(has(storage(""), "local_ssd")) << "a plan that render --on gke refuses";
  write("{ local_ssd: true }");
  for (const char* command : {"plan job.yaml --on a2-ultragpu-1g:1", "plan job.yaml --on a2-ultragpu-1g:1,gke"}) {
    const Captured plan = run(command);
    EXPECT_EQ(plan.exit.code, 3) << plan.out;
    EXPECT_TRUE(has(plan.err, "job.yaml:10:32: error: volumes./data.local_ssd: the nodes that gke makes have no disks"))
        << plan.err;
    EXPECT_TRUE(has(plan.err, "hint: hyperdisk or filestore; or --on kubernetes")) << plan.err;
  }
  EXPECT_EQ(run("plan job.yaml --on a2-ultragpu-1g:1,kubernetes").exit.code, 0);
}

// The price is that of the place where the target makes the nodes, not of the cheapest place.
TEST_F(PlanStorage, prices_are_of_where_gke_makes_the_nodes) {
  const auto zone = [&](const std::string& sets) {
    const Captured plan = run("plan job.yaml --on a2-highgpu-1g:1 --json" + sets);
    EXPECT_EQ(plan.exit.code, 0) << plan.err;
    return parse_json(plan.out, "stdout")
        .value()
        .find("search")
        ->find("offers")
        ->items()[0]
        .find("price")
        ->find("zone")
        ->text();
  };
  EXPECT_EQ(zone(" --set gke.location=europe-west4-a"), "europe-west4-a");
  EXPECT_EQ(zone(" --set gke.location=europe-west4 --set gke.zone=europe-west4-b"), "europe-west4-b");
  EXPECT_TRUE(zone(" --set gke.location=europe-west4").starts_with("europe-west4-"));
  EXPECT_EQ(zone(" --set gke.location=us-central1-a --region us-central1"), "us-central1-a");
  const auto refused = [&](const std::string& options, const char* words, const char* hint) {
    const Captured plan = run("plan job.yaml --on a2-highgpu-1g:1 " + options);
    EXPECT_EQ(plan.exit.code, 2) << plan.out;
    EXPECT_TRUE(has(plan.err, words) && has(plan.err, hint)) << plan.err;
  };
  refused("--region us-east1",
          "job.yaml:9:53: error: gke.location: the nodes are made in us-central1-a, and --region asks for us-east1",
          "hint: leave --region out; or another gke.location");
  refused("--zone us-central1-b", "the nodes are made in us-central1-a, and --zone asks for us-central1-b",
          "hint: leave --zone out");
  refused("--set gke.location=us-east1-c", "there is no a2-highgpu-1g in us-east1-c (gke.location)", "hint: it is in ");
}

// Where a plan has no target, or several, somebody has to say which.
TEST_F(PlanStorage, render_takes_its_target_from_a_plan_that_has_one) {
  const auto planned = [&](const std::string& on) {
    EXPECT_EQ(run("plan job.yaml --out plan.json --on a2-highgpu-1g:1" + on).exit.code, 0);
    return run("render --plan plan.json --dry-run");
  };
  const Captured several = planned(",gke,kubernetes");
  EXPECT_EQ(several.exit.code, 2) << several.out;
  EXPECT_TRUE(has(several.err, "render: --on is required: the plan is for gke or kubernetes\n  hint: --on gke\n"))
      << several.err;
  EXPECT_FALSE(has(planned(",kubernetes").out, "cluster.tf"));
  EXPECT_TRUE(has(run("submit job.yaml").err, "systole submit: --on is required\n  hint: `systole submit --help`"));
}

// A plan that left the volume open, as one for other machines does: rendered by its feed, with the numbers in a line.
TEST_F(PlanStorage, render_takes_the_cheapest_that_keeps_up) {
  ASSERT_EQ(run("plan job.yaml --on a2-highgpu-1g:1 --out plan.json").exit.code, 0);
  Node document = plan_file();
  const auto reopened = [&](const char* volume, double rows_per_second) {
    Node workload = *document.find("workload"), feed = *document.find("feed");
    workload.set("volumes", Node::map({{"/data", parse_yaml(volume, "volume").value()}}));
    feed.set("rows_per_second", rows_per_second);
    document.set("workload", std::move(workload)).set("feed", std::move(feed));
    systole_.write("open.json", to_json(document));
    return run("render --plan open.json --on gke --replace --out there");
  };
  const Captured slow = reopened("cheapest: true", 100);
  ASSERT_EQ(slow.exit.code, 0) << slow.err;
  EXPECT_TRUE(has(slow.err,
                  "volumes: /data: filestore basic-hdd of 1.00 TiB, $163.84 a month (price of us-central1): "
                  "105 MB/s, 600 small reads/s for 3.20 kB/s, 100 small reads/s (100 rows/s of 32 bytes), "
                  "and holds "))
      << slow.err;
  const Captured fast = reopened("cheapest: true", 1e6);
  ASSERT_EQ(fast.exit.code, 0) << fast.err;
  EXPECT_TRUE(has(fast.err, "volumes: /data: parallelstore new of 11.7 TiB, ")) << fast.err;
  const std::string job = read_text_file((systole_.folder() / "there/job.yaml").string()).value();
  EXPECT_TRUE(has(job, "parallelstore.csi.storage.gke.io") && has(job, "gke-parallelstore/volumes")) << job;
  const Captured never = reopened("filestore: basic-hdd", 1e6);
  EXPECT_EQ(never.exit.code, 1) << never.err;
  EXPECT_TRUE(has(never.err, "no storage of the catalog gives ")) << never.err;
  const Captured written = reopened("{ filestore: basic-hdd, size: 1TiB }", 1e4);
  ASSERT_EQ(written.exit.code, 0) << written.err;
  EXPECT_TRUE(has(written.err, "STARVES in the first epoch: 0.06 of what is taken")) << written.err;
}

TEST_F(PlanStorage, a_missing_fact_is_named_with_its_edit) {
  std::filesystem::remove(systole_.folder() / "a.txt");
  const Captured unknown = run("plan job.yaml --on a2-highgpu-1g:1");
  EXPECT_EQ(unknown.exit.code, 2) << unknown.out;
  EXPECT_TRUE(
      has(unknown.err, "volumes: /data: its size follows from the data, and how large they are is unknown here"))
      << unknown.err;
  EXPECT_TRUE(has(unknown.err, "hint: a size beside it, of all that it has to hold: { cheapest: true, size: 500GiB }"))
      << unknown.err;
  write("{ cheapest: true, size: 500GiB }");
  EXPECT_EQ(run("plan job.yaml --on a2-highgpu-1g:1").exit.code, 0);
  systole_.write(
      "mine.yaml",
      "systole: 1\nname: mine\ncommand: [python3, train.py]\nimage: registry.example/x:1\nvolumes: { /data: { "
      "cheapest: true } }\nresources: { accelerators: 'a3-highgpu-8g:1' }\n");
  const Captured program = run("render mine.yaml --on kubernetes");
  EXPECT_EQ(program.exit.code, 2);
  EXPECT_TRUE(has(program.err, "and this workload has none")) << program.err;
  EXPECT_TRUE(has(program.err, "hint: filestore: zonal with a size")) << program.err;
}

// A price that nobody knows is in no budget.
TEST_F(PlanStorage, a_budget_needs_the_price_of_the_storage) {
  write("{ hyperdisk: balanced, size: 500GiB }");
  const Captured refused = run("plan job.yaml --on a2-highgpu-1g:1 --budget 100");
  EXPECT_EQ(refused.exit.code, 2) << refused.out;
  EXPECT_TRUE(has(refused.err,
                  "volumes: /data: the price of hyperdisk balanced of 500 GiB is unknown, and a budget is to "
                  "hold"))
      << refused.err;
  const Captured free = run("plan job.yaml --on a2-highgpu-1g:1 --out plan.json");
  EXPECT_EQ(free.exit.code, 0) << free.err;
  EXPECT_TRUE(
      has(free.out, "  storage /data: hyperdisk balanced of 500 GiB; its price is unknown, and not in the dollars"))
      << free.out;
  EXPECT_FALSE(plan_file().find("cost")->find("known")->as_bool().value());
  const Captured later = run("render --plan plan.json --on gke --dry-run --set objective.budget=100");
  EXPECT_EQ(later.exit.code, 2) << later.out;
}

// Of v5e and l4 the faster v5e is cheaper by itself. Together with a Filestore that feeds it, it is not: there the l4
// wins, with a file system that the v5e would wait for. Dollars of both choices are those of the joint search.
TEST_F(PlanStorage, hardware_and_storage_are_chosen_together) {
  const auto planned = [&](const std::string& sets) {
    const Captured plan =
        run("plan job.yaml --on g2-standard-4:1,v5e:1 --objective cheapest --json --set model.width=256 "
            "--set model.mlp=1024 --set train.batch=16384 --set train.steps=10" +
            sets);
    EXPECT_EQ(plan.exit.code, 0) << plan.err;
    return *parse_json(plan.out, "stdout").value().find("search");
  };
  const auto name_of_choice = [](const Node& search) {
    const auto offer = static_cast<std::size_t>(search.find("chosen")->find("offer")->as_int().value());
    return search.find("offers")->items()[offer].find("name")->text();
  };
  const auto dollars = [](const Node& estimate) { return estimate.find("dollars")->as_double().value(); };
  const Node apart = planned(" --set data.folder=tokens --set 'volumes={/data: none}'");
  EXPECT_EQ(name_of_choice(apart), "v5e:1x1 (v5litepod-1, 1 chip)");
  const Node joint = planned(" --set 'volumes={/data: {filestore: auto, size: 300GiB}}'");
  EXPECT_EQ(name_of_choice(joint), "1 x g2-standard-4 (1 l4)");
  const Node& other = *joint.find("lost")->items()[0].find("estimate");
  EXPECT_NE(other.find("offer")->as_int().value(), joint.find("chosen")->find("offer")->as_int().value());
  EXPECT_LT(dollars(*joint.find("chosen")), dollars(other)) << "the best of v5e, with the storage that suits it best";
  EXPECT_GT(other.find("waited_seconds")->as_double().value(), 0) << "it starves, and is priced so";
  // The cheapest tier is not the answer either.
  const Node hdd = planned(" --set 'volumes={/data: {filestore: basic-hdd, size: 1TiB}}'");
  EXPECT_LT(dollars(*joint.find("chosen")), dollars(*hdd.find("chosen")));
}

// What a pod requests is what a plan for this machine has counted: threads that compute and read, and memory with the
// queue of rows. Without it somebody has to say so.
TEST_F(PlanStorage, a_pod_requests_what_the_plan_has_counted) {
  systole_.shell("for i in $(seq 300); do echo line $i of a small text; done > b.txt");
  systole_.write(
      "small.yaml",
      "systole: 1\nname: small\nmodel: { family: llama, layers: 2, width: 32, heads: 2, kv_heads: 1, mlp: 64, "
      "context: 16 }\ndata: { train: { files: b.txt }, readers: 2, queue: 5, tokenizer: { vocabulary: 290 } "
      "}\ntrain: { batch: 2, steps: 10, optimizer: { rate: 1e-3 } }\nclaims: { /runs: runs }\nfolder: "
      "/runs\nimage: registry.example/train:1\n");
  const Captured blind = run("render small.yaml --on kubernetes");
  EXPECT_EQ(blind.exit.code, 2);
  EXPECT_TRUE(has(blind.err, "or --plan, one made for such a machine")) << blind.err;
  const Captured plan = run("plan small.yaml --out plan.json");
  ASSERT_EQ(plan.exit.code, 0) << plan.err;
  const Captured made = run("render --plan plan.json --on kubernetes --dry-run");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const double total = static_cast<double>(plan_file().find("total_bytes")->as_int().value());
  const auto pieces = static_cast<std::int64_t>(std::ceil(total / 0x1p28)) + 1;  // the agent's
  const auto memory_of = [](std::int64_t quarters) {
    return quarters % 4 == 0 ? fmt::format("memory: {}Gi", quarters / 4) : fmt::format("memory: {}Mi", quarters * 256);
  };
  const std::string memory = memory_of(pieces);
  const std::string threads = plan_file().find("target")->find("facts")->find("threads")->text();
  EXPECT_TRUE(has(made.out, fmt::format("cpu: \"{}\"", std::stoi(threads) + 2))) << "two read: " << made.out;
  EXPECT_TRUE(has(made.out, memory)) << memory << made.out;
  EXPECT_FALSE(has(made.out, "/dev/shm")) << made.out;

  ASSERT_EQ(run("plan small.yaml --set data.cache.memory=1GiB --out plan.json").exit.code, 0);
  const Captured cached = run("render --plan plan.json --on kubernetes --dry-run");
  EXPECT_TRUE(has(cached.out, memory_of(pieces + 4))) << cached.out;
  EXPECT_TRUE(has(cached.out, "mountPath: /dev/shm") && has(cached.out, "sizeLimit: 1088Mi")) << cached.out;
}

// What a pod requests for the loader of a program that was imported.
TEST_F(PlanStorage, shared_memory_holds_the_batches_of_an_imported_loader) {
  systole_.write("start.sh", "torchrun --nproc-per-node=8 train.py --batch-size 64 --num_workers=4\n");
  const Captured imported = run("import start.sh --out mine.yaml");
  ASSERT_EQ(imported.exit.code, 0) << imported.err;
  const std::string yaml = read_text_file((systole_.folder() / "mine.yaml").string()).value();
  EXPECT_TRUE(has(yaml, "workers: 4") && has(yaml, "batch_size: 64")) << yaml;
  const auto render = [&](const std::string& sets) {
    return run(
        "render mine.yaml --set image=registry.example/x:1 --set 'claims={/runs: runs}' --set folder=/runs --set "
        "resources.accelerators=a3-highgpu-8g:1 --on kubernetes --dry-run" +
        sets);
  };
  const Captured unsaid = render("");
  EXPECT_TRUE(
      has(unsaid.err, "resources.loader: the bytes of a sample are unknown, so /dev/shm is an eighth of the memory"))
      << unsaid.err;
  const Captured sized = render(" --set resources.loader.sample=588KiB");
  ASSERT_EQ(sized.exit.code, 0) << sized.err;
  // 8 ranks x (4 workers x 2 + 1) x 64 x 588 KiB = 2,646 MiB, in pieces of 64 MiB.
  EXPECT_TRUE(has(sized.out, "medium: Memory") && has(sized.out, "sizeLimit: 2688Mi")) << sized.out;
  const Captured large = render(" --set resources.loader.sample=1GiB");
  EXPECT_EQ(large.exit.code, 1) << large.out;
  EXPECT_TRUE(has(large.err, "its batches take 4.50 TiB of /dev/shm, and the pod has ")) << large.err;
}

}  // namespace
}  // namespace systole::cli
