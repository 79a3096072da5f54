// The key `secrets`: references that become environment variables of the ranks. A text that is not a reference may be a
// secret, so no message repeats it or shows its line.
#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/secret.h"
#include "describe/spec/secret_look.h"
#include "ground/base/errors.h"

namespace systole {

bool is_variable_of_agent(std::string_view name) {
  constexpr std::string_view kOurs[] = {"RANK",       "WORLD_SIZE",  "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"};
  return name.starts_with("SYSTOLE_") || std::ranges::find(kOurs, name) != std::end(kOurs);
}

// A place without a column shows no source line; a place of `--set` names only the key.
Where without_source(Where where) {
  where.col = 0;
  if (!where.file.starts_with("--set ")) return where;
  return {where.file.substr(0, where.file.find('=')), 0, 0};
}

namespace {

// Reads as `codec` does if `look` finds no error in the node. The caller puts the key's name before the first error.
Codec guarded(Codec codec, const char* key, std::function<void(const Node&, std::vector<Error>&)> look) {
  codec.read = [key, look = std::move(look), read = codec.read](const Node& node, Workload& w) -> Status {
    std::vector<Error> wrong;
    look(node, wrong);
    if (wrong.empty()) {
      Status status = read(node, w);
      if (status.ok()) return {};
      wrong.push_back(std::move(status).error());
    }
    for (Error& error : wrong) {
      error.where = without_source(error.where);
      if (&error != &wrong.front()) error.message = fmt::format("{}: {}", key, error.message);
    }
    return together(std::move(wrong));
  };
  return codec;
}

}  // namespace

Codec without_secret_variables(Codec codec) {
  return guarded(std::move(codec), "env", [](const Node& node, std::vector<Error>& wrong) {
    for (const Node::Entry& entry : node.entries()) {
      const std::string why = entry.value.is_scalar() ? why_secret(entry.key, entry.value.text()) : "";
      if (why.empty()) continue;
      const std::string name = is_variable_name(entry.key) ? entry.key : "NAME";
      wrong.push_back(error(ErrorKind::invalid,
                            "{} is a secret ({}), and everybody who may read this file would have it", name, why)
                          .at(entry.where())
                          .hinted(fmt::format("secrets: {{ {0}: 'env:{0}' }} in its place, or {1}", name,
                                              "file:/PATH, kubernetes:SECRET/KEY, secret-manager:PROJECT/NAME")));
    }
  });
}

Codec without_secret_texts(Codec codec, const char* key) {
  return guarded(std::move(codec), key, [](const Node& node, std::vector<Error>& wrong) {
    const auto look = [&](const Node& text) {
      const std::string_view form = text.is_scalar() ? secret_form(text.text()) : "";
      if (form.empty()) return;
      wrong.push_back(
          error(ErrorKind::invalid, "here stands {}, and everybody who may read this file would have it", form)
              .at(text.where())
              .hinted("secrets: { NAME: 'env:NAME' }; the program reads the variable NAME"));
    };
    look(node);
    for (const Node& item : node.items()) look(item);
    for (const Node::Entry& entry : node.entries()) look(entry.value);
  });
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
