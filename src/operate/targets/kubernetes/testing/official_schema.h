#pragma once
// Strict check of a Kubernetes object against its official schema. For tests.

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "ground/base/document.h"
#include "ground/base/text_file.h"

namespace systole {

class OfficialSchemas {
 public:
  // `folder`: has the bundle of built-in kinds, and a file for each custom kind.
  explicit OfficialSchemas(const std::string& folder)
      : bundle_(nlohmann::json::parse(read_text_file(folder + "/kubernetes-1.36.strict.schema.json").value())) {
    for (const auto& [name, path] : bundle_["x-roots"].items())
      roots_[name] = {{"$ref", path}, {"definitions", bundle_["definitions"]}};
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (!file.path().string().ends_with(".schema.json")) continue;
      nlohmann::json custom = nlohmann::json::parse(read_text_file(file.path().string()).value());
      if (!custom.contains("x-crd")) continue;
      const nlohmann::json& of = custom["x-crd"];
      const std::string name =
          of["group"].get<std::string>() + "/" + of["version"].get<std::string>() + "/" + of["kind"].get<std::string>();
      roots_[name] = std::move(custom);
    }
  }

  // The first violation; nothing: it is valid.
  std::optional<std::string> wrong(const Node& object) {
    const Node* version = object.find("apiVersion");
    const Node* kind = object.find("kind");
    if (version == nullptr || kind == nullptr) return "has no apiVersion or no kind";
    const std::string name = version->text() + "/" + kind->text();
    if (!roots_.contains(name)) return name + " is not known";
    std::unique_ptr<valijson::Schema>& schema = schemas_[name];
    if (schema == nullptr) {
      schema = std::make_unique<valijson::Schema>();
      valijson::SchemaParser(valijson::SchemaParser::kDraft7)
          .populateSchema(valijson::adapters::NlohmannJsonAdapter(roots_[name]), *schema);
    }
    const nlohmann::json value = nlohmann::json::parse(to_json(object));
    valijson::ValidationResults results;
    valijson::Validator validator;
    if (validator.validate(*schema, valijson::adapters::NlohmannJsonAdapter(value), &results)) return std::nullopt;
    std::string text;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      for (const std::string& part : error.context) text += part;
      text += ": " + error.description + "\n";
    }
    return text;
  }

 private:
  nlohmann::json bundle_;
  std::map<std::string, nlohmann::json> roots_;  // by GROUP/VERSION/KIND
  std::map<std::string, std::unique_ptr<valijson::Schema>> schemas_;
};

}  // namespace systole
