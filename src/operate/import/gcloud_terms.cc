#include <algorithm>

#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_machines.h"

namespace systole {

void read_terms(const std::vector<SeenFlag>& seen, Draft& draft) {
  const auto set = [&](const char* terms, const SeenFlag* flag) {
    draft.set("resources.provisioning", std::string(terms), flag->value.from);
  };
  if (const SeenFlag* flag = last_flag(seen, "preemptible")) {
    set("spot", flag);
    draft.set_entry("gcloud.options", "preemptible", "", flag->value.from);
  }
  if (const SeenFlag* flag = last_flag(seen, "spot")) set("spot", flag);
  if (const SeenFlag* flag = last_flag(seen, "flex-start")) set("flex-start", flag);
  if (const SeenFlag* flag = last_flag(seen, "provisioning-model"); flag != nullptr && !flag->expands) {
    std::string model = flag->value.text;
    std::ranges::transform(model, model.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (model == "SPOT" || model == "STANDARD" || model == "FLEX_START")
      set(model == "SPOT" ? "spot" : model == "STANDARD" ? "on-demand" : "flex-start", flag);
    else
      draft.set_entry("gcloud.options", "provisioning-model", flag->value.text, flag->value.from);
  }
  const SeenFlag *name = last_flag(seen, "reservation"), *affinity = last_flag(seen, "reservation-affinity");
  if (name != nullptr && !name->expands && affinity != nullptr && affinity->value.text == "specific") {
    set("reserved", affinity);
    return draft.set("resources.reservation", name->value.text, name->value.from);
  }
  for (const SeenFlag* flag : {name, affinity})
    if (flag != nullptr && !flag->expands)
      draft.set_entry("gcloud.options", std::string(flag->name), flag->value.text, flag->value.from);
}

}  // namespace systole
