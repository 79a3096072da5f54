// Persistent volume claims, mounted at their paths on every node.
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {

void add_claims(const KubernetesJob& k, PodParts& parts) {
  int n = 0;
  for (const auto& [path, claim] : k.workload().claims) {
    const Result<std::string> name = dns_label(claim, 63, "a claim");
    if (!name.ok() || *name != claim)
      parts.wrong.push_back(key_error(ErrorKind::invalid, "claims", "'{}' is no name of a claim", comment_text(claim))
                                .hinted("lower-case letters, digits and '-'"));
    if (path == "/systole" || path.starts_with("/systole/"))
      parts.wrong.push_back(
          key_error(ErrorKind::invalid, "claims", "{} is where the files of the run are", comment_text(path))
              .hinted("another path"));
    parts.mount(fmt::format("claim-{}", n++), path, false,
                Node::map({{"persistentVolumeClaim", Node::map({{"claimName", claim}})}}));
  }
}

}  // namespace systole
