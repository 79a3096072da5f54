#pragma once
// Whether an object of Kubernetes is what its official schema says, strictly. For tests.

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
  explicit OfficialSchemas(const std::string& bundle)
      : bundle_(nlohmann::json::parse(read_text_file(bundle).value())) {}

  // What is wrong with it; nothing: it is as it should be.
  std::optional<std::string> wrong(const Node& object) {
    const Node* version = object.find("apiVersion");
    const Node* kind = object.find("kind");
    if (version == nullptr || kind == nullptr) return "has no apiVersion or no kind";
    const std::string name = version->text() + "/" + kind->text();
    if (!bundle_["x-roots"].contains(name)) return name + " is not known";
    std::unique_ptr<valijson::Schema>& schema = schemas_[name];
    if (schema == nullptr) {
      const nlohmann::json root = {{"$ref", bundle_["x-roots"][name]}, {"definitions", bundle_["definitions"]}};
      schema = std::make_unique<valijson::Schema>();
      valijson::SchemaParser(valijson::SchemaParser::kDraft7)
          .populateSchema(valijson::adapters::NlohmannJsonAdapter(root), *schema);
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
  std::map<std::string, std::unique_ptr<valijson::Schema>> schemas_;
};

}  // namespace systole
