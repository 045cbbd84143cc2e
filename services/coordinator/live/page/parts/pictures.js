// Pictures behind the token: fetched when they come into view, shown as blobs, freed after loading.

import { blobAddress, runPath } from "./api.js";
import { make } from "./dom.js";

// Until its picture is there, an image holds one transparent pixel: without any, browsers draw it as broken.
const BLANK = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
const addresses = new WeakMap();
const visible = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    visible.unobserve(target);
    load(target);
  }
}, { rootMargin: "200px" });

async function load(image) {
  try {
    const address = await blobAddress(addresses.get(image));
    image.addEventListener("load", () => {
      URL.revokeObjectURL(address);
      image.classList.add("drawn");
    }, { once: true });
    image.src = address;
  } catch {
    image.alt = `${image.alt} (not available)`;
  }
}

export const segmentPath = (run, one) => `${runPath(run)}/epochs/${one.epoch}/episodes/${one.episode}/segments/${one.segment}`;

// A picture of the game, 160 x 144 pixels.
export function picture(path, alt, className = "screen") {
  const image = make("img", undefined, className, { alt, src: BLANK, width: "160", height: "144" });
  addresses.set(image, path);
  visible.observe(image);
  return image;
}

export const keyFrame = (run, one, number, alt) => picture(`${segmentPath(run, one)}/frames/${number}`, alt);
