// The key `secrets`: references that become variables of the ranks' environment. What stands in place of a reference
// may be a secret, so that no message repeats it or shows its line.
#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/secret.h"

namespace systole {

bool is_variable_of_agent(std::string_view name) {
  constexpr std::string_view kOurs[] = {"RANK",       "WORLD_SIZE",  "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"};
  return name.starts_with("SYSTOLE_") || std::ranges::find(kOurs, name) != std::end(kOurs);
}

// A place without a column shows no line of its source.
Where without_source(Where where) {
  where.col = 0;
  return where;
}

void add_secrets_key(Schema& schema) {
  Codec codec = labels_codec(AT(secrets));
  codec.type = "map of NAME to reference";
  codec.read = [](const Node& node, Workload& w) -> Status {
    const auto refuse = [](const Where& where, std::string what, std::string hint) {
      return error(ErrorKind::invalid, "{}", what).at(without_source(where)).hinted(std::move(hint));
    };
    if (!node.is_map())
      return refuse(node.where(), "secrets are a map of names to references",
                    "secrets: { TOKEN: file:/home/me/token }");
    std::map<std::string, std::string> secrets;
    for (const Node::Entry& entry : node.entries()) {
      if (!is_variable_name(entry.key) || is_variable_of_agent(entry.key))
        return refuse(entry.where(), "this name of a secret is no variable that a rank may have",
                      "letters, digits and '_'; none that the agent sets");
      if (entry.value.kind() != NodeKind::string || !read_secret_reference(entry.value.text()))
        return refuse(entry.value.where(), fmt::format("the secret {} is no reference", entry.key), kSecretForms);
      secrets[entry.key] = entry.value.text();
    }
    w.secrets = std::move(secrets);
    return {};
  };
  schema.keys.push_back(
      {.path = "secrets",
       .codec = std::move(codec),
       .doc = "Variables of every rank whose values stand elsewhere: { TOKEN: file:/home/me/token }.",
       .more = "env:NAME, of the environment that starts it; file:/PATH, which nobody but its owner may read; "
               "kubernetes:SECRET/KEY; secret-manager:PROJECT/NAME[/VERSION]. Values are read on each node when it "
               "starts, and are in no file, command line, log or message of Systole's.",
       .optional = true});
}

}  // namespace systole
