#include <algorithm>

#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_machines.h"

namespace systole {

void read_node_counts(const std::vector<ParsedFlag>& seen, GcloudOptions& options, Draft& draft) {
  const ParsedFlag *fixed = last_flag(seen, "num-nodes"), *least = last_flag(seen, "min-nodes"),
                   *most = last_flag(seen, "max-nodes");
  for (const ParsedFlag* flag : {fixed, least, most})
    if (flag != nullptr && flag->expands) return;
  const std::int64_t start = fixed == nullptr ? -1 : count_of(draft, fixed->value, 0).value_or(-1);
  if (most == nullptr) {
    for (const ParsedFlag* flag : {least, last_flag(seen, "enable-autoscaling")})
      if (flag != nullptr) keep_option(*flag, options);
    if (start >= 1) draft.ask(&RequestedResources::nodes, CountRange{start, start}, fixed->value.from);
    if (start == 0 || start == 1) keep_option(*fixed, options);
    return;
  }
  const std::string from = (least == nullptr ? "" : least->value.from + " ") + most->value.from;
  const auto end = count_of(draft, most->value);
  const auto begin = least == nullptr ? std::optional<std::int64_t>(0) : count_of(draft, least->value, 0);
  if (!end || !begin) return;
  if (*begin > *end)
    return draft.wrong(error(ErrorKind::invalid, "{}: no range", from).hinted("--min-nodes below --max-nodes"));
  if (start >= 0 && (start > *end || start < *begin))
    return draft.wrong(error(ErrorKind::invalid, "{}: it is outside of {}", fixed->value.from, from)
                           .hinted(fmt::format("--num-nodes from {} to {}", *begin, *end)));
  draft.ask(&RequestedResources::nodes, CountRange{std::max<std::int64_t>(1, *begin), *end}, from);
  if (fixed != nullptr) keep_option(*fixed, options);
  if (*begin == 0 && least != nullptr) keep_option(*least, options);
  if (*begin == *end || *end == 1)  // not a range of a workload
    for (const char* name : {"enable-autoscaling", "min-nodes", "max-nodes"})
      if (const ParsedFlag* flag = last_flag(seen, name)) options[name] = flag->value;
}

}  // namespace systole
