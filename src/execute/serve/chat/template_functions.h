#pragma once
// The filters, tests, methods and functions of chat templates, as Jinja and Python have them.

#include <ctime>
#include <string>
#include <string_view>

#include "execute/serve/chat/template_value.h"

namespace systole::chat {

// Each throws Failure: unsupported (the name), invalid (types, arguments), does_not_fit.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// value.name(arguments); nothing if the value has no such method.
bool has_method(const Value& value, std::string_view name);
Value call_method(const Value& value, const std::string& name, const Arguments& arguments);
// The functions that every template has.
Map global_functions();
// strftime_now, which transformers gives to templates: the text of `time` in a format of strftime.
Function strftime_of(const std::tm& time);

// -1, 0 or 1, of numbers or texts. Throws Failure(invalid) for others.
int compare(const Value& a, const Value& b);
bool contains(const Value& whole, const Value& part);

}  // namespace systole::chat
