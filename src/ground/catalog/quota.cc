#include "ground/catalog/quota.h"

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/catalog/machine_type.h"

namespace systole {
namespace {

constexpr std::string_view kOf[] = {"gpu", "tpu", "vcpu", "local_ssd", "disk", "address"};
constexpr std::string_view kScopes[] = {"region", "global"};
constexpr std::string_view kRequired[] = {"metric", "of", "unit", "terms", "source", "date"};
constexpr std::string_view kOptional[] = {"id",    "scope",   "dimension",  "accelerators", "machines",
                                          "usual", "default", "confidence", "note"};

Provisioning terms_named(TableRow& row, const std::string& name) {
  const auto at = std::ranges::find(kProvisioningNames, name);
  if (at != std::end(kProvisioningNames)) return static_cast<Provisioning>(at - std::begin(kProvisioningNames));
  const std::vector<std::string> names(std::begin(kProvisioningNames), std::end(kProvisioningNames));
  row.wrong("terms",
            error(ErrorKind::invalid, "'{}' is no way to have a machine", name).hinted(nearest_hint(name, names)));
  return Provisioning::on_demand;
}

}  // namespace

const TableColumns kQuotaColumns{"quotas", kRequired, kOptional};

std::string_view name_of(QuotaOf of) { return kOf[static_cast<int>(of)]; }

QuotaRow read_quota(TableRow& row) {
  QuotaRow quota;
  quota.metric = row.name("metric");
  quota.id = row.string("id");
  quota.of = static_cast<QuotaOf>(row.one_of("of", kOf));
  quota.global = row.one_of("scope", kScopes) == 1;
  quota.unit = row.name("unit");
  quota.dimension = row.string("dimension");
  for (const std::string& name : row.list("terms")) quota.terms.push_back(terms_named(row, name));
  quota.accelerators = row.list("accelerators");
  quota.machines = row.list("machines");
  quota.usual = row.string("usual");
  quota.most_unasked = row.count("default");
  quota.dated = row.dated("metric");
  quota.note = row.string("note");
  return quota;
}

std::vector<const QuotaRow*> quotas_of(std::span<const QuotaRow> rows, QuotaOf of, std::string_view machine,
                                       std::string_view accelerator, Provisioning terms) {
  std::vector<const QuotaRow*> found;
  for (const QuotaRow& row : rows) {
    if (row.of != of || std::ranges::find(row.terms, terms) == row.terms.end()) continue;
    if (!row.accelerators.empty() && std::ranges::find(row.accelerators, accelerator) == row.accelerators.end())
      continue;
    if (!row.machines.empty() &&
        std::ranges::none_of(row.machines, [&](const std::string& pattern) { return matches(pattern, machine); }))
      continue;
    found.push_back(&row);
  }
  return found;
}

}  // namespace systole
