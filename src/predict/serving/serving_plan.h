#pragma once
// Plans serving: how much traffic a device carries within the wanted latency, how many devices the expected traffic
// takes, and for what price. Each device serves a replica of its own; devices of a machine share nothing.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/catalog/tables.h"
#include "predict/plan/offers.h"
#include "predict/serving/capacity.h"
#include "predict/serving/step_times.h"

namespace systole {

// This machine, or an offer.
struct ServingRow {
  std::string name;                     // "1 x a3-highgpu-1g (1 h100)"
  std::optional<ClusterOffer> offer;    // nothing: this machine
  std::int64_t devices = 1;             // of it, each with a replica
  std::optional<DollarsPerHour> price;  // of all of it
  bool calibrated = false;              // times are of measured rates

  ServingMemory memory;
  ServedTimes priced;
  std::optional<ServingCapacity> capacity;  // of a device; nothing: it does not fit, or its times are unknown
  std::int64_t replicas = 0;                // devices for the expected traffic; 0: no number would do
  std::optional<ServingOutcome> asked;      // of each replica at its share of that traffic
  std::optional<Dollars> per_million;       // answer tokens, at capacity
  std::optional<BytesPerSecond> disk;       // from which parameters are read, where it is known
  std::string lost;                         // why it is not the first; empty: it is, or nothing carries the traffic

  bool carries() const { return replicas > 0; }
  // Machines or slices for all replicas.
  std::int64_t machines() const { return (replicas + devices - 1) / devices; }
  // Reading the parameters from the disk; nothing: its rate is unknown.
  std::optional<Seconds> load() const;
};

struct ServingPlan {
  Workload workload;
  std::int64_t parameters = 0;
  EngineOptions options;               // completed
  std::vector<ArrivingRequest> trace;  // empty: there is none
  std::vector<ServingRow> rows;        // best first: fewest dollars for a token, then most traffic
  std::vector<std::pair<std::string, std::string>> left_out;  // accelerator, and why
  std::string catalog_date, today;
  double asked = 0;                              // requests a second, users, or 1: the trace as it was
  std::string words_of_load(double load) const;  // "2.5 requests/s", "30 users"
  // Of a usual prompt, alone. REQUIRES: the row's times are known.
  Seconds first_token(const ServingRow& row) const;
};

// Of the products of a plan's offers.
inline ProductType product_type(const ServeSpec& serve) {
  return serve.compute == DType::bf16 ? ProductType::bf16 : ProductType::f32;
}

// Builds plans row by row: one model, one Program a target.
class ServingPlanner {
 public:
  // `trace`: of serve.traffic.trace, else empty. REQUIRES: a workload of kind serve. Errors: invalid, unsupported: the
  // model or the options are of no engine.
  static Result<ServingPlanner> create(const Workload& workload, std::vector<ArrivingRequest> trace);

  // This machine: what its device makes of the Program, and its speed.
  struct Here {
    std::string name;
    const Target& target;
    const WorkspaceOf& workspace_of;
    const MachineSpeed& speed;
    Bytes limit;
    std::optional<BytesPerSecond> disk;
  };
  // `outside`: memory of the process beside the arena of this Program. Errors: as engine_program;
  // unsupported: serve.compute, as such a device computes in f32.
  Status add_here(const Here& here, const std::function<Bytes(const Program&)>& outside);
  // Of `any`, each accelerator's cheapest device in its smallest offer. `today`: "2026-11-27", from which the age of
  // prices counts. Errors: as planned_offers.
  Status add_offers(CatalogTables& tables, const Catalog& catalog, std::span<const std::string> targets,
                    const OfferRules& rules, std::string today);
  // The plan, with its rows in order.
  ServingPlan take();

 private:
  ServingPlanner() = default;
  Result<Program> program_for(const Target& target, const WorkspaceOf& workspace_of) const;
  void play(ServingRow& row) const;

  std::shared_ptr<const Model> model_;
  ServingPlan plan_;
};

// The refusal of a plan of which nothing carries the traffic. REQUIRES: rows.
Error refusal_of(const ServingPlan& plan);

// "0.35", "12,400": a number a second, to three digits or whole.
std::string rate_text(double rate);

}  // namespace systole
