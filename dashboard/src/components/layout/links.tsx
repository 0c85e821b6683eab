import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { ReactNode, Ref } from 'react'

type Base<P> = P & { ref?: Ref<HTMLAnchorElement>; children?: ReactNode }

/** Router links styled by Mantine. They are real anchors, so a middle click opens a tab. */
export const TextLink = createLink((props: Base<AnchorProps>) => <Anchor inherit underline="always" {...props} />)
export const ButtonLink = createLink((props: Base<ButtonProps>) => <Button component="a" {...props} />)
