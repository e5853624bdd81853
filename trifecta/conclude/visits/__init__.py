"""Page loads and watches of a video in browsers, and what other studies published of them."""
