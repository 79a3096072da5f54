#pragma once
// The families as documents name them, and access to a field by name in the specs that have it. A new family is a spec
// with families(), an alternative of FamilySpec, and the keys that only it has (schema_model_<family>.cc). It has every
// shared key whose field its spec has.

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "describe/spec/schema.h"

namespace systole {

struct ModelFamily {
  FamilySpec made;                    // the spec before keys are read; its name() is the value of model.family
  std::vector<PresetValue> defaults;  // defaults of keys that differ from the keys' own
  std::vector<Preset> presets = {};
  void (*add_keys)(Schema&) = nullptr;  // keys of this family only
  void (*rules)(const ModelSpec&, std::vector<BrokenRule>&) = nullptr;
  const char* name() const;
};
// The families of all alternatives of FamilySpec, in its order, which is the display order.
const std::vector<ModelFamily>& model_families();
const ModelFamily& family_of(const ModelSpec& model);  // one of them

// The condition for keys of a single task.
Condition families_trained_on(Task task);

std::vector<Preset> decoder_presets();  // of gpt and llama

template <typename Variant>
struct FirstOf;
template <typename First, typename... Others>
struct FirstOf<std::variant<First, Others...>> {
  template <typename Ask>
  static auto having() {
    if constexpr (!std::is_void_v<decltype(Ask{}(std::declval<First&>()))>)
      return First();
    else
      return FirstOf<std::variant<Others...>>::template having<Ask>();
  }
};

// A field, by name, of the families whose specs have it. Ask()(spec) is the field, or void.
template <typename Ask>
struct FamilyField {
  template <typename Spec>
  static constexpr bool is_in = !std::is_void_v<decltype(Ask{}(std::declval<Spec&>()))>;
  using Having = decltype(FirstOf<FamilySpec>::having<Ask>());
  using T = std::remove_cvref_t<decltype(Ask{}(std::declval<Having&>()))>;

  // For a family without the field: a default value, which is discarded.
  static T& at(Workload& w) {
    return std::visit(
        []<typename Spec>(Spec& spec) -> T& {
          if constexpr (is_in<Spec>) {
            return Ask{}(spec);
          } else {
            thread_local Having none;
            none = Having();
            return Ask{}(none);
          }
        },
        w.model.family);
  }
  operator Field<T>() const { return &at; }  // for codecs

  static T get_or(const FamilySpec& family, T otherwise) {
    return std::visit(
        [&]<typename Spec>(const Spec& spec) -> T {
          if constexpr (is_in<Spec>)
            return Ask{}(spec);
          else
            return otherwise;
        },
        family);
  }

  // The condition of its key: the families with the field; none if all have it.
  static Condition condition() {
    Condition of{"model.family", {}};
    for (const ModelFamily& family : model_families()) {
      const bool has = std::visit([]<typename Spec>(const Spec&) { return is_in<Spec>; }, family.made);
      if (has) of.values.emplace_back(family.name());
    }
    return of.values.size() == model_families().size() ? Condition() : of;
  }
};

#define IN_FAMILY(field)                                              \
  (::systole::FamilyField<decltype([](auto& spec) -> decltype(auto) { \
    if constexpr (requires { spec.field; }) return (spec.field);      \
  })>())

// Rules shared by transformers of several families. A field that could not be read is 0; no rule reports a 0.
void check_heads(std::int64_t head, std::int64_t heads, std::int64_t width, std::vector<BrokenRule>& broken);
void check_mlp(std::int64_t width, std::int64_t mlp, double mlp_ratio, std::vector<BrokenRule>& broken);
// `attended`: heads × head; `fed`: sum of the hidden widths of a layer's feed-forward parts; `tables`: rows of all
// embeddings.
void check_countable(std::int64_t layers, std::int64_t width, std::int64_t attended, double fed, std::int64_t tables,
                     std::vector<BrokenRule>& broken);

}  // namespace systole
