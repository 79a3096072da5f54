#pragma once
// Calls into a plugin, for this folder only: fills in a struct's size, finds the function, and converts the plugin's
// error. Others use plugin.h, topology.h, executable.h and client.h.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/pjrt/abi.h"
#include "ground/pjrt/named_value.h"
#include "ground/pjrt/plugin.h"

namespace systole::pjrt {

class Api {
 public:
  // REQUIRES: `table` belongs to a plugin of major version 0 and lives as long as the process.
  Api(const abi::Api* table, std::string path);

  // `what`: the purpose, for the error message: "compile". Errors: unsupported if the plugin lacks the function; those
  // of the plugin.
  template <typename Args>
  Status call(Args& args, std::string_view what) const {
    args.head.size = abi::size_at<Args>(version_.minor);
    return invoke(Args::kSlot, &args, what);
  }
  // Sets the size of a nested struct.
  template <typename Struct>
  void size(Struct& value) const {
    value.head.size = abi::size_at<Struct>(version_.minor);
  }

  template <typename Args, typename Object>
  Result<decltype(Args::value)> value_of(Object* object, std::string_view what) const {
    Args args;
    args.object = object;
    TRY(call(args, what));
    return args.value;
  }
  template <typename Args, typename Object>
  Result<std::string> text_of(Object* object, std::string_view what) const {
    Args args;
    args.object = object;
    TRY(call(args, what));
    return args.list == nullptr ? std::string() : std::string(args.list, args.num);
  }
  // The result is borrowed from the object.
  template <typename Args, typename Object>
  Result<Args> list_of(Object* object, std::string_view what) const {
    Args args;
    args.object = object;
    TRY(call(args, what));
    if (args.list == nullptr) args.num = 0;
    return args;
  }
  template <typename Args, typename Object>
  void destroy(Object* object) const {  // its error cannot be reported
    Args args;
    args.object = object;
    (void)call(args, "free an object");
  }

  const std::string& path() const { return path_; }
  ApiVersion version() const { return version_; }
  Error failure(abi::Error* error, std::string_view what) const;  // takes `error`

 private:
  abi::Api::Function function(int slot) const;  // null if the plugin lacks it
  Status invoke(int slot, void* args, std::string_view what) const;

  const abi::Api* table_;
  std::string path_, name_;
  ApiVersion version_;
  std::size_t num_functions_;
};

// Owns a plugin's object and destroys it with the call `Destroy`.
template <typename Object, typename Destroy>
class Owned {
 public:
  Owned(std::shared_ptr<const Api> api, Object* object) : api_(std::move(api)), object_(object) {}
  Owned(Owned&& other) noexcept : api_(std::move(other.api_)), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) api_->template destroy<Destroy>(object_);
  }
  Object* get() const { return object_; }
  const Api& api() const { return *api_; }
  const std::shared_ptr<const Api>& shared_api() const { return api_; }

 private:
  std::shared_ptr<const Api> api_;
  Object* object_;
};

// Converts from the plugin's values. Skips values of unknown types.
std::vector<NamedValue> named_values(const abi::NamedValue* values, std::size_t num);
// Converts to the plugin's values, which borrow from `values`.
std::vector<abi::NamedValue> borrowed(const std::vector<NamedValue>& values);

}  // namespace systole::pjrt
