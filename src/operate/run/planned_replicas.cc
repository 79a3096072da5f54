#include "operate/run/planned_replicas.h"

#include "ground/base/text_file.h"
#include "predict/serving/serving_plan.h"

namespace systole {

Result<std::vector<ArrivingRequest>> trace_of(const Workload& workload) {
  const std::string& path = workload.serve.traffic.trace;
  if (path.empty()) return std::vector<ArrivingRequest>();
  return read_trace(TRY(read_text_file(path)), path);
}

Result<std::string> set_planned_replicas(CatalogView& view, Workload& workload) {
  const std::string& on = workload.resources.accelerators;
  if (workload.kind != Workload::Kind::serve || workload.serve.replicas || on.empty()) return std::string();
  ServingPlanner planner = TRY(ServingPlanner::create(workload, TRY(trace_of(workload))));
  OfferRules rules;  // as `systole plan --on` without options
  rules.stack = stack_of(builtin_stacks(), "");
  rules.products = {product_type(workload.serve)};
  TRY(planner.add_offers(view.tables, view.catalog, std::span(&on, 1), rules, view.today));
  const ServingPlan plan = planner.take();
  const ServingRow& best = plan.rows.front();
  if (!best.carries())
    return refusal_of(plan)
        .about("resources.accelerators")
        .hinted("other resources.accelerators: systole plan WORKLOAD --on any compares them; or serve.replicas");
  const CountRange servers{best.replicas, 2 * best.replicas};
  workload.serve.replicas = servers;
  return fmt::format("# {} to {} servers: {} expected, a device carries {}\n", servers.least, servers.most,
                     plan.words_of_load(plan.asked), plan.words_of_load(best.capacity->load));
}

}  // namespace systole
