#include "ground/base/letter_case.h"
#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_machines.h"

namespace systole {

void read_terms(const std::vector<ParsedFlag>& seen, Draft& draft) {
  const auto set = [&](const char* terms, const ParsedFlag* flag) {
    draft.set("resources.provisioning", std::string(terms), flag->value.from);
  };
  if (const ParsedFlag* flag = last_flag(seen, "preemptible")) {
    set("spot", flag);
    draft.set_entry("gcloud.options", "preemptible", "", flag->value.from);
  }
  if (const ParsedFlag* flag = last_flag(seen, "spot")) set("spot", flag);
  if (const ParsedFlag* flag = last_flag(seen, "flex-start")) set("flex-start", flag);
  if (const ParsedFlag* flag = last_flag(seen, "provisioning-model"); flag != nullptr && !flag->expands) {
    const std::string model = upper_case(flag->value.text);
    if (model == "SPOT" || model == "STANDARD" || model == "FLEX_START")
      set(model == "SPOT" ? "spot" : model == "STANDARD" ? "on-demand" : "flex-start", flag);
    else
      draft.set_entry("gcloud.options", "provisioning-model", flag->value.text, flag->value.from);
  }
  const ParsedFlag *name = last_flag(seen, "reservation"), *affinity = last_flag(seen, "reservation-affinity");
  if (name != nullptr && !name->expands && affinity != nullptr && affinity->value.text == "specific") {
    set("reserved", affinity);
    return draft.set("resources.reservation", name->value.text, name->value.from);
  }
  for (const ParsedFlag* flag : {name, affinity})
    if (flag != nullptr && !flag->expands)
      draft.set_entry("gcloud.options", std::string(flag->name), flag->value.text, flag->value.from);
}

}  // namespace systole
