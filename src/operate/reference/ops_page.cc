#include "describe/ir/op.h"
#include "operate/reference/reference_page.h"

namespace systole {

std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return escaped;
}

std::string ops_page(const std::function<std::string(const OpDef&)>& cpu_kernel) {
  std::string text = fmt::format(
      "# Ops\n\n{}What each op is and which of its facets there are. FLOPs and bytes of a call come from `work`; the "
      "reference backend\n"
      "runs every op's `reference`; the cpu column names the kernel.\n\n"
      "| op | types | formula | gradient | sharding | reference | cpu |\n|---|---|---|---|---|---|---|\n",
      kMadeBy);
  for (const OpDef* op : all_ops()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", op->name, cell(op->signature), cell(op->summary),
                        op->gradient ? "yes" : "", op->sharding ? "yes" : "", op->reference ? "yes" : "",
                        cell(cpu_kernel(*op)));
  }
  return text;
}

}  // namespace systole
