#pragma once
// A text that no model was trained on: plain prose, written for this program, of about 450 tokens.

#include <string_view>

namespace systole {

inline constexpr std::string_view kHeldOutText =
    R"(The mill at Oberwies stopped grinding in the spring of a wet year, and for two summers nobody climbed the path to
it except the boy who fed the geese. He liked the place because it was never quite silent. Water still ran through the
narrow channel, turned nothing, and fell into the pond with the sound of someone sweeping a floor in the next room.

In the third summer a woman came from the town with a folding rule and a notebook. She measured the wheel, counted its
forty-two paddles, of which nine were missing, and asked the boy whether the stream ever froze. "Only at the edges," he
said. She wrote that down as carefully as if it had been a number.

What she wanted was not flour. Her plan was to drive a small generator, about six kilowatts, enough for the school and
the bakery. The council discussed it for most of an evening. One member feared for the trout; another remembered that
his grandfather had been promised the water rights; a third asked what would happen if the price of electricity fell.
She answered each of them in turn. The trout would pass through a side channel with a gentle slope. The rights had lapsed
when the mill closed. As for the price, she said, a machine that is already paid for does not mind waiting.

Work began in October. They replaced the missing paddles with larch, cleaned four carts of gravel from the channel, and
found under it an iron key that fitted no door in the valley. On the last day before the snow the gate was lifted a
hand's breadth. The wheel shuddered, moved, hesitated as though it were trying to recall something, and then went round
evenly, once every eleven seconds. In the schoolroom a lamp came on. The children had been told to expect it, and cheered
anyway; the boy, who was not in the room, stood by the pond and noticed only that the sweeping had stopped.
)";

}  // namespace systole
